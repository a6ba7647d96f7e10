"""The input for drawing a random action: the cluster so far, and a source of randomness.

An action for random worlds declares in its own file its frequency (`weight`) and how it is drawn
(`drawn`, a class method with a `Draw`). It knows no other action. Actions that exclude each other
declare a common resource in `holds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from emulator.kernel.rng import Stream

T = TypeVar("T")
Assignment = list[tuple[int, ...]]
Ways = Literal["both", "to_peer", "from_peer"]
"""The affected directions of a link, as seen from the action's `broker`."""


def link_between(broker: int, peer: int | str) -> tuple[object, ...]:
    """The resource that an action on a link holds, the same for both ends."""
    return ("link", *sorted((str(broker), str(peer))))


@dataclass
class Draw:
    """The cluster after the actions drawn so far: `topics` has each topic's assignment. A drawn
    action that creates, grows or deletes a topic updates it."""

    stream: Stream
    brokers: tuple[int, ...]
    topics: dict[str, Assignment]
    settings: Mapping[str, str]
    in_files: bool = False
    made: int = 0
    gone: set[str] = field(default_factory=set)

    def below(self, n: int) -> int:
        return self.stream.below(n)

    def between(self, low: int, high: int) -> int:
        return self.stream.between(low, high)

    def spread(self, low: int, high: int) -> int:
        """A number between the two, with each order of magnitude equally likely."""
        while True:
            top = self.stream.between(low.bit_length(), high.bit_length())
            value = self.stream.between(1 << (top - 1), (1 << top) - 1)
            if low <= value <= high:
                return value

    def chance(self, percent: int) -> bool:
        return self.stream.below(100) < percent

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.stream.below(len(items))]

    @property
    def broker(self) -> int:
        return self.one_of(self.brokers)

    def peer_of(self, broker: int) -> int | None:
        """Another broker; None if there is only one."""
        others = [one for one in self.brokers if one != broker]
        return self.one_of(others) if others else None

    def peer_or_zookeeper(self, broker: int) -> int | str | None:
        """The other end of one of its links: a broker or ZooKeeper."""
        return "zookeeper" if self.chance(40) else self.peer_of(broker)

    @property
    def ways(self) -> Ways:
        """Usually both."""
        ways: tuple[Ways, ...] = ("both", "both", "to_peer", "from_peer")
        return self.one_of(ways)

    @property
    def topic(self) -> str | None:
        """An existing topic; None if there is none."""
        return self.one_of(sorted(self.topics)) if self.topics else None

    def replicas(self, factor: int) -> tuple[int, ...]:
        """`factor` brokers in random order."""
        return tuple(self.stream.shuffled(list(self.brokers))[:factor])

    def new_topic(self) -> str:
        """A topic name that was never used."""
        self.made += 1
        return f"drawn-{self.made}"
