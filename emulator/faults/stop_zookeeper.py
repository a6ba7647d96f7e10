"""The ZooKeeper server's process ends, and is started again on its data."""

from __future__ import annotations

from emulator.faults.base import Stimulus, World
from emulator.faults.drawing import Draw


class StopZookeeper(Stimulus, frozen=True, tag="stop_zookeeper"):
    """The server is gone (SIGKILL): connections break and are refused; what it answered is in its
    log."""

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Stimulus:
        return cls()

    def holds(self) -> tuple[object, ...]:
        return ("process", "zookeeper")

    def apply(self, world: World) -> None:
        world.stop_zookeeper()

    def healed(self) -> Stimulus:
        return StartZookeeper()

    @property
    def needs_own_server(self) -> bool:
        return True


class StartZookeeper(Stimulus, frozen=True, tag="start_zookeeper"):
    """A new process on the same data. The sessions in its log get their whole time-out once
    more."""

    def apply(self, world: World) -> None:
        world.start_zookeeper()

    @property
    def needs_own_server(self) -> bool:
        return True
