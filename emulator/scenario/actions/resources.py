"""Exhausted resources of a process: file descriptors."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class UseUpDescriptors(Action, frozen=True, tag="use_up_descriptors"):
    """The process of `broker` can open no file and accept no connection: RLIMIT_NOFILE is lowered
    to the number of open descriptors."""

    broker: int

    soak_weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.hosts[self.broker].use_up_descriptors()

    def healed(self) -> Action:
        return FreeDescriptors(self.broker)


class FreeDescriptors(Action, frozen=True, tag="free_descriptors"):
    """The original limit of descriptors is restored."""

    broker: int

    def apply(self, world: World) -> None:
        world.hosts[self.broker].free_descriptors()
