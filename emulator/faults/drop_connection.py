"""A broker's connection to ZooKeeper that is lost at an operation: before it was applied, or
after."""

from __future__ import annotations

from typing import Literal

from emulator.faults.base import Stimulus, World
from zk.wire import When

Op = Literal["create", "delete", "setData", "multi", "exists", "getData", "getChildren2", "sync"]


class DropConnection(Stimulus, frozen=True, tag="drop_connection"):
    """The connection of `broker` breaks at its next `op` (any, if none is given), `count` times
    (0: no more): `before` the server has it, or `after` it was applied, so that the answer is
    lost. The client cannot tell which; it reconnects within its session."""

    broker: int
    when: When
    op: Op | None = None
    count: int = 1

    def apply(self, world: World) -> None:
        world.drop_connection(self.broker, self.when, self.op, self.count)

    def healed(self) -> Stimulus:
        return DropConnection(self.broker, self.when, self.op, 0)
