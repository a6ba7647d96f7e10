"""A broker's connection to ZooKeeper that is lost before or after an operation is applied."""

from __future__ import annotations

from typing import Literal

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw
from zk.wire import When

Op = Literal[
    "create",
    "delete",
    "setData",
    "multi",
    "exists",
    "getData",
    "getChildren",
    "getChildren2",
    "sync",
]


class DropConnection(Action, frozen=True, tag="drop_connection"):
    """The connection of `broker` breaks at its next `count` operations `op`; 0 ends it. `when` is
    `before` the server receives it, or `after` it was applied, so that the response is lost.
    Without an `op`, any operation counts. The client cannot distinguish the two; it reconnects
    within its session."""

    broker: int
    when: When
    op: Op | None = None
    count: int = 1

    weight = 6

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        ops: tuple[Op | None, ...] = (None, "setData", "multi", "create", "delete", "getData")
        when: When = draw.one_of(("before", "after"))
        return cls(draw.broker, when, draw.one_of(ops), draw.between(1, 3))

    def apply(self, world: World) -> None:
        world.zookeeper.drop_connection(self.broker, self.when, self.op, self.count)

    def healed(self) -> Action:
        return DropConnection(self.broker, self.when, self.op, 0)
