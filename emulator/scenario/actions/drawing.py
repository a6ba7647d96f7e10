"""What a random world gives an action to be drawn from: the cluster so far, and chance.

An action that random worlds may do declares in its own file how often (`weight`) and how it is
drawn (`drawn`, a class method that gets a `Draw`). It knows no other action; what cannot be done
twice at once says so by `holds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from emulator.kernel.rng import Stream

T = TypeVar("T")
Assignment = list[tuple[int, ...]]
Ways = Literal["both", "to_peer", "from_peer"]
"""The directions of a link that a fault is about, as its `broker` sees them."""


def link_between(broker: int, peer: int | str) -> tuple[object, ...]:
    """What an action about a link holds: it is the same from both its ends."""
    return ("link", *sorted((str(broker), str(peer))))


@dataclass
class Draw:
    """The cluster as a schedule has made it so far: `topics` has each topic's assignment.
    A draw that creates, grows or deletes a topic updates it."""

    stream: Stream
    brokers: tuple[int, ...]
    topics: dict[str, Assignment]
    settings: Mapping[str, str]
    in_files: bool = False
    """Whether the brokers' logs are in files."""
    made: int = 0
    gone: set[str] = field(default_factory=set)

    def below(self, n: int) -> int:
        return self.stream.below(n)

    def between(self, low: int, high: int) -> int:
        return self.stream.between(low, high)

    def spread(self, low: int, high: int) -> int:
        """Between the two, each order of magnitude as likely as the next."""
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
        """Any broker."""
        return self.one_of(self.brokers)

    def peer_of(self, broker: int) -> int | None:
        """Another broker, if there is one."""
        others = [one for one in self.brokers if one != broker]
        return self.one_of(others) if others else None

    def peer_or_zookeeper(self, broker: int) -> int | str | None:
        """The other end of one of its links."""
        return "zookeeper" if self.chance(40) else self.peer_of(broker)

    @property
    def ways(self) -> Ways:
        """Mostly both."""
        ways: tuple[Ways, ...] = ("both", "both", "to_peer", "from_peer")
        return self.one_of(ways)

    @property
    def topic(self) -> str | None:
        """Any topic that there is."""
        return self.one_of(sorted(self.topics)) if self.topics else None

    def replicas(self, factor: int) -> tuple[int, ...]:
        """So many brokers, in drawn order."""
        return tuple(self.stream.shuffled(list(self.brokers))[:factor])

    def new_topic(self) -> str:
        """A name that no topic had."""
        self.made += 1
        return f"drawn-{self.made}"
