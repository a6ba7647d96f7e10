"""A link of little width between two brokers."""

from __future__ import annotations

from emulator.faults.base import Stimulus, Ways, World


class SlowLink(Stimulus, frozen=True, tag="slow_link"):
    """No more than `bytes_per_s` pass from `broker` to `peer`, and as much back (0: no limit);
    what does not, waits. All connections between the two share it, requests of controllers and
    records alike."""

    broker: int
    peer: int
    bytes_per_s: int
    ways: Ways = "both"

    def apply(self, world: World) -> None:
        world.narrow(self.broker, self.peer, self.ways, self.bytes_per_s)

    def healed(self) -> Stimulus:
        return SlowLink(self.broker, self.peer, 0, self.ways)
