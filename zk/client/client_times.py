"""How long Java's ZooKeeper client waits before a retry and between pings.

Plain data for the clients of real servers: a run with accelerated time divides them all.
"""

from __future__ import annotations

import msgspec


class ClientTimes(msgspec.Struct, frozen=True):
    """The Java client's constants, in milliseconds (ClientCnxn, StaticHostProvider)."""

    reconnect_wait_ms: int = 1000
    reconnect_jitter_ms: int = 1000
    ping_slack_ms: int = 1000
    ping_max_ms: int = 10_000

    def divided_by(self, time_scale: float) -> ClientTimes:
        """All values for a run whose time is `time_scale` times as fast."""
        return ClientTimes(*(max(1, int(ms / time_scale)) for ms in msgspec.structs.astuple(self)))
