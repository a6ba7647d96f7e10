"""A ZooKeeper session that the server expires although its client lives."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class ExpireSession(Action, frozen=True, tag="expire_session"):
    """The server expires the session of `broker` now, as if it had timed out. The broker learns of
    it when it reconnects, a second or two later, and opens a new session, which ends the fault."""

    broker: int

    weight = 6
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.zookeeper.expire_session(self.broker)
