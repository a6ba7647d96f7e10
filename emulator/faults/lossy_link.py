"""A link that loses packets: on TCP they come later, and what is behind them waits."""

from __future__ import annotations

from emulator.faults.base import Stimulus, Ways, World


class LossyLink(Stimulus, frozen=True, tag="lossy_link"):
    """Of the messages between `broker` and `peer` the share `loss` (0.05: one in twenty) is lost
    each time it is sent; it is sent again after 200 ms, 400 ms, and so on. `loss` 0: none."""

    broker: int
    peer: int | str
    loss: float
    ways: Ways = "both"

    def apply(self, world: World) -> None:
        world.lose(self.broker, self.peer, self.ways, self.loss)

    def healed(self) -> Stimulus:
        return LossyLink(self.broker, self.peer, 0.0, self.ways)

    def wrong(self) -> str | None:
        return None if 0 <= self.loss < 1 else "loss is below 1; for a link that is dead, cut_link"
