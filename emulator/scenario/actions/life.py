"""The end and start of broker processes: SIGKILL, a machine crash, SIGTERM, and a start.

As in Kafka, logs, epoch caches and the checkpointed high watermarks survive a kill.
"""

from __future__ import annotations

from typing import Literal

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class EndsProcess(Action, frozen=True):
    """Ends a broker's process; a start undoes it."""

    broker: int

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def holds(self) -> tuple[object, ...]:
        return ("process", self.broker)

    def healed(self) -> Action:
        return Start(self.broker, if_down=True)


class Kill(EndsProcess, frozen=True, tag="kill"):
    """The process ends abruptly (SIGKILL)."""

    weight = 4
    soak_weight = 4

    def apply(self, world: World) -> None:
        world.hosts[self.broker].kill()


class Crash(EndsProcess, frozen=True, tag="crash"):
    """The machine crashes and loses, with `lose`: nothing more than by `kill`; `unflushed` records
    (after the last flush: see log.flush.interval.messages); or the whole `disk`."""

    lose: Literal["nothing", "unflushed", "disk"] = "nothing"

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker, draw.one_of(("unflushed", "disk")))

    def apply(self, world: World) -> None:
        world.hosts[self.broker].kill()
        world.hosts[self.broker].lose_from_disk(self.lose)


class Terminate(EndsProcess, frozen=True, tag="terminate"):
    """An orderly stop (SIGTERM): controlled shutdown first, where it is enabled."""

    weight = 4
    soak_weight = 2

    def apply(self, world: World) -> None:
        world.hosts[self.broker].terminate()


class Start(Action, frozen=True, tag="start"):
    """A new process on the same disk. `registered_ms`: when its registration is to be created, in
    milliseconds since the cluster was up (recordings contain it). `if_down`: do nothing if the
    broker is running. `profile`: the Kafka version that it runs from now on (an upgrade).
    `propagation`: how that version propagates ISR changes, according to its
    inter.broker.protocol.version."""

    broker: int
    registered_ms: int | None = None
    if_down: bool = False
    profile: str = ""
    propagation: Literal["", "zk", "rpc"] = ""

    def undoes(self, other: Action) -> bool:
        return isinstance(other, EndsProcess) and other.broker == self.broker

    def apply(self, world: World) -> None:
        if self.if_down and world.hosts[self.broker].is_running:
            return
        if self.profile or self.propagation:
            world.hosts[self.broker].install(self.profile, self.propagation)
        world.start_again(self.broker, self.registered_ms)
