"""A broker without a network, until it is plugged in again."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw


class Unplug(Action, frozen=True, tag="unplug"):
    """No traffic passes between the broker and other brokers or ZooKeeper; connections stay open. A
    broker in a container loses its network interface, and so its clients too."""

    broker: int

    soak_weight = 4

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def holds(self) -> tuple[object, ...]:
        return ("network", self.broker)

    def apply(self, world: World) -> None:
        world.links.unplug(self.broker)

    def healed(self) -> Action:
        return PlugIn(self.broker)


class PlugIn(Action, frozen=True, tag="plug_in"):
    """The network is restored."""

    broker: int

    def apply(self, world: World) -> None:
        world.links.plug_in(self.broker)
