"""Links between two brokers, or between a broker and ZooKeeper: cut, delayed, restored."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw, Ways, link_between


class CutLink(Action, frozen=True, tag="cut_link"):
    """Traffic between `broker` and `peer` (a broker id or `zookeeper`) stops in both directions or
    one. Existing connections stay open; new ones fail."""

    broker: int
    peer: int | str
    ways: Ways = "both"

    weight = 6
    soak_weight = 5

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_of(broker)
        ways = draw.ways
        return None if peer is None else cls(broker, peer, ways)

    def holds(self) -> tuple[object, ...]:
        return link_between(self.broker, self.peer)

    def apply(self, world: World) -> None:
        world.links.cut(self.broker, self.peer, self.ways)

    def healed(self) -> Action:
        return HealLink(self.broker, self.peer)


class HealLink(Action, frozen=True, tag="heal_link"):
    """Traffic continues; messages that were held back arrive in order."""

    broker: int
    peer: int | str

    def undoes(self, other: Action) -> bool:
        """Either end of a link may be named first."""
        ends = {self.broker, self.peer}
        return isinstance(other, CutLink) and {other.broker, other.peer} == ends

    def apply(self, world: World) -> None:
        world.links.heal(self.broker, self.peer)


class DelayLink(Action, frozen=True, tag="delay_link"):
    """Every message between the two takes `delay_ms` longer, in each direction."""

    broker: int
    peer: int | str
    delay_ms: int

    weight = 4
    soak_weight = 2

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_or_zookeeper(broker)
        return None if peer is None else cls(broker, peer, draw.spread(1, 3000))

    def holds(self) -> tuple[object, ...]:
        return link_between(self.broker, self.peer)

    def apply(self, world: World) -> None:
        world.links.delay(self.broker, self.peer, self.delay_ms)

    def healed(self) -> Action:
        return DelayLink(self.broker, self.peer, 0)


class CutZookeeperLink(Action, frozen=True, tag="cut_zookeeper_link"):
    """Traffic between a broker and ZooKeeper stops."""

    broker: int

    weight = 6
    soak_weight = 3

    @classmethod
    def drawn(cls, draw: Draw) -> Action:
        return cls(draw.broker)

    def holds(self) -> tuple[object, ...]:
        return link_between(self.broker, "zookeeper")

    def apply(self, world: World) -> None:
        world.links.cut(self.broker, "zookeeper")

    def healed(self) -> Action:
        return HealZookeeperLink(self.broker)


class HealZookeeperLink(Action, frozen=True, tag="heal_zookeeper_link"):
    """Traffic between a broker and ZooKeeper continues; messages that were held back arrive in
    order."""

    broker: int

    def apply(self, world: World) -> None:
        world.links.heal(self.broker, "zookeeper")
