"""The ZooKeeper server's process ends and is restarted on its data."""

from __future__ import annotations

from emulator.scenario.actions.base import ZOOKEEPER, Action, World
from emulator.scenario.actions.drawing import Draw


class StopZookeeper(Action, frozen=True, tag="stop_zookeeper"):
    """The server is killed (SIGKILL): connections break and new ones are refused; every
    acknowledged write is in its log. In an ensemble this affects all servers, or the given `server`
    (`zookeeper-2`)."""

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
    """A new process on the same data. Each session in its log gets its full timeout again."""

    means_all = True
    server: str = ZOOKEEPER

    def apply(self, world: World) -> None:
        world.zookeeper.start(self.server)
