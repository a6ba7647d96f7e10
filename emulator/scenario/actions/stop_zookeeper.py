"""The ZooKeeper server's process ends, and is started again on its data."""

from __future__ import annotations

from emulator.scenario.actions.base import ZOOKEEPER, Action, World
from emulator.scenario.actions.drawing import Draw


class StopZookeeper(Action, frozen=True, tag="stop_zookeeper"):
    """The server is gone (SIGKILL): connections break and are refused; what it answered is in its
    log. Of an ensemble all are, or the `server` that is named (`zookeeper-2`)."""

    means_all = True
    server: str = ZOOKEEPER

    weight = 2
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls()

    def holds(self) -> tuple[object, ...]:
        return ("process", self.server)

    def apply(self, world: World) -> None:
        world.zookeeper.stop(self.server)

    def healed(self) -> Action:
        return StartZookeeper(self.server)


class StartZookeeper(Action, frozen=True, tag="start_zookeeper"):
    """A new process on the same data. The sessions in its log get their whole time-out once
    more."""

    means_all = True
    server: str = ZOOKEEPER

    def apply(self, world: World) -> None:
        world.zookeeper.start(self.server)
