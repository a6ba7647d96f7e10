"""A ZooKeeper session that the server ends although its client lives."""

from __future__ import annotations

from emulator.faults.base import Stimulus, World


class ExpireSession(Stimulus, frozen=True, tag="expire_session"):
    """The server ends the session of `broker` now, as if its time had run out. The broker learns it
    when it reconnects, a second or two later, and opens another; that is its healing."""

    broker: int

    def apply(self, world: World) -> None:
        world.expire_session(self.broker)
