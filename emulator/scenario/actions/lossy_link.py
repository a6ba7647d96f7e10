"""A link that loses packets: TCP retransmits them, which delays all messages behind them."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw, Ways


class LossyLink(Action, frozen=True, tag="lossy_link"):
    """Each transmission of a message between `broker` and `peer` is lost with probability `loss`
    (0.05: one in twenty), and repeated after 200 ms, 400 ms, and so on. `loss` 0: none."""

    broker: int
    peer: int | str
    loss: float
    ways: Ways = "both"

    weight = 4
    is_random = True

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_or_zookeeper(broker)
        ways = draw.ways
        loss = draw.one_of((0.01, 0.1, 0.4))
        return None if peer is None else cls(broker, peer, loss, ways)

    def apply(self, world: World) -> None:
        world.links.lose(self.broker, self.peer, self.ways, self.loss)

    def healed(self) -> Action:
        return LossyLink(self.broker, self.peer, 0.0, self.ways)

    def wrong(self) -> str | None:
        return None if 0 <= self.loss < 1 else "loss is below 1; for a link that is dead, cut_link"
