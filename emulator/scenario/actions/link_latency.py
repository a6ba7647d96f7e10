"""A link with random latency."""

from __future__ import annotations

from emulator.scenario.actions.base import Action, World
from emulator.scenario.actions.drawing import Draw, Ways


class LinkLatency(Action, frozen=True, tag="link_latency"):
    """Every message between `broker` and `peer` takes longer: half of them `low_ms` to
    `typical_ms`, half `typical_ms` to `high_ms`. Messages on one connection keep their order, those
    on different connections may not. `high_ms` 0 restores the normal latency."""

    broker: int
    peer: int | str
    low_ms: int
    typical_ms: int
    high_ms: int
    ways: Ways = "both"

    weight = 4
    is_random = True
    soak_weight = 1

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        broker = draw.broker
        peer = draw.peer_or_zookeeper(broker)
        low, typical, high = sorted(draw.spread(1, 2000) for _ in range(3))
        ways = draw.ways
        return None if peer is None else cls(broker, peer, low, typical, high, ways)

    @classmethod
    def standing(cls, draw: Draw) -> list[Action]:
        """ZooKeeper is slow for every broker: requests that usually take milliseconds take seconds,
        which makes many more interleavings possible."""
        if not draw.chance(20):
            return []
        typical_ms = draw.spread(5, 250)
        times_ms = typical_ms // 2, typical_ms, typical_ms * 2
        return [cls(broker, "zookeeper", *times_ms) for broker in draw.brokers]

    def apply(self, world: World) -> None:
        times = self.low_ms, self.typical_ms, self.high_ms
        world.links.link_latency(self.broker, self.peer, self.ways, times)

    def healed(self) -> Action:
        return LinkLatency(self.broker, self.peer, 0, 0, 0, self.ways)

    def wrong(self) -> str | None:
        if not self.low_ms <= self.typical_ms <= self.high_ms:
            return "expected low_ms <= typical_ms <= high_ms"
        return None
