"""A ZooKeeper session that the server ends although its client lives."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class ExpireSession(Action, frozen=True, tag="expire_session"):
    """The server ends the session of `broker` now, as if its time had run out. The broker learns it
    when it reconnects, a second or two later, and opens another; that is its healing."""

    broker: int

    weight = 6
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.zookeeper.expire_session(self.broker)
