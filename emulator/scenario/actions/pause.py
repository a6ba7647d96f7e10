"""A paused process, as by SIGSTOP or a long garbage collection."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class Pause(Action, frozen=True, tag="pause"):
    """The broker (or the ZooKeeper server) is suspended; its sockets stay open, and its client
    sends no pings."""

    broker: int | None = None
    server: str | None = None

    weight = 6
    soak_weight = 5

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(server="zookeeper") if draw.chance(15) else cls(draw.broker)

    def holds(self) -> tuple[object, ...]:
        return ("process", self.target)

    @property
    def target(self) -> int | str:
        return self.server if self.broker is None else self.broker  # type: ignore[return-value]

    def apply(self, world: World) -> None:
        if self.server is not None:
            world.zookeeper.pause(self.server)
        elif self.broker is not None:
            world.hosts[self.broker].pause()

    def healed(self) -> Action:
        return Resume(self.broker, self.server)


class Resume(Action, frozen=True, tag="resume"):
    """The process continues (SIGCONT)."""

    broker: int | None = None
    server: str | None = None

    def apply(self, world: World) -> None:
        if self.server is not None:
            world.zookeeper.resume(self.server)
        elif self.broker is not None:
            world.hosts[self.broker].resume()
