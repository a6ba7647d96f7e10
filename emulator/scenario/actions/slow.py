"""A slow broker: its link has little bandwidth, or its disk is slow."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class SlowFollower(Action, frozen=True, tag="slow_follower"):
    """Records reach `broker` no faster than `bytes_per_s` (0: no limit). It keeps fetching but
    falls behind."""

    broker: int
    bytes_per_s: int

    weight = 3
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker, draw.spread(200, 100_000))

    def apply(self, world: World) -> None:
        world.links.limit_bandwidth(self.broker, self.bytes_per_s)

    def healed(self) -> Action:
        return SlowFollower(self.broker, 0)


class SlowDisk(Action, frozen=True, tag="slow_disk"):
    """Every append to a log of `broker` takes `ms_per_append` (0: no delay), while Kafka's locks
    are held."""

    broker: int
    ms_per_append: int

    weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker, draw.spread(1, 300))

    def apply(self, world: World) -> None:
        world.hosts[self.broker].slow_disk(self.ms_per_append)

    def healed(self) -> Action:
        return SlowDisk(self.broker, 0)
