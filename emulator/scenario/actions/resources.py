"""A process that the machine gives no more of something: space on its disk, file descriptors."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class FillDisk(Action, frozen=True, tag="fill_disk"):
    """The disk of `broker` has no space left: a write takes what fits and is then refused. Its log
    directory goes offline, and the broker halts where it has no other."""

    broker: int

    soak_weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def apply(self, world: World) -> None:
        world.hosts[self.broker].fill_disk()

    def healed(self) -> Action:
        return FreeDisk(self.broker)


class FreeDisk(Action, frozen=True, tag="free_disk"):
    """There is space again; what has failed meanwhile stays offline until the broker's next
    start."""

    broker: int

    def apply(self, world: World) -> None:
        world.hosts[self.broker].free_disk()


class UseUpDescriptors(Action, frozen=True, tag="use_up_descriptors"):
    """The process of `broker` can open no file and accept no connection: RLIMIT_NOFILE is as many
    descriptors as it has."""

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
    """It can open as many as the machine allows."""

    broker: int

    def apply(self, world: World) -> None:
        world.hosts[self.broker].free_descriptors()
