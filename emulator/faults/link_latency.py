"""A link whose messages take their time, by chance."""

from __future__ import annotations

from emulator.faults.base import Stimulus, Ways, World


class LinkLatency(Stimulus, frozen=True, tag="link_latency"):
    """Every message between `broker` and `peer` takes longer: half of them `low_ms` to
    `typical_ms`, half `typical_ms` to `high_ms`. Within a connection none overtakes another, those
    of two connections do. `high_ms` 0: as usual."""

    broker: int
    peer: int | str
    low_ms: int
    typical_ms: int
    high_ms: int
    ways: Ways = "both"

    def apply(self, world: World) -> None:
        times = self.low_ms, self.typical_ms, self.high_ms
        world.link_latency(self.broker, self.peer, self.ways, times)

    def healed(self) -> Stimulus:
        return LinkLatency(self.broker, self.peer, 0, 0, 0, self.ways)

    def wrong(self) -> str | None:
        if not self.low_ms <= self.typical_ms <= self.high_ms:
            return "low_ms <= typical_ms <= high_ms is wanted"
        return None
