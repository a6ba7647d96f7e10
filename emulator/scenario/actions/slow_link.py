"""A link with little bandwidth between two brokers."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw, Ways


class SlowLink(Action, frozen=True, tag="slow_link"):
    """At most `bytes_per_s` pass on each connection from `broker` to `peer`, and as much back (0:
    no limit); other messages of the connection wait, control requests and records alike."""

    broker: int
    peer: int
    bytes_per_s: int
    ways: Ways = "both"

    weight = 2
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_of(broker)
        ways = draw.ways
        return None if peer is None else cls(broker, peer, draw.spread(500, 100_000), ways)

    def apply(self, world: World) -> None:
        world.links.narrow(self.broker, self.peer, self.ways, self.bytes_per_s)

    def healed(self) -> Action:
        return SlowLink(self.broker, self.peer, 0, self.ways)
