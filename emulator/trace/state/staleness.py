"""When brokers' metadata was older than ZooKeeper's state, and which versions it missed.

Combines partition states and metadata caches; `emulator.trace.state` has the definition. A cache
entry of a topic that was deleted and recreated is older than all of its new versions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from emulator.trace.state.caches import MetadataCaches
from emulator.trace.state.clock import Clock
from emulator.trace.state.partitions import Partitions, State
from emulator.trace.state.spans import OPEN, Interval, Known, merged
from emulator.trace.values import TopicPartition


class Stale(msgspec.Struct, frozen=True):
    """A cache shows `version` during [from_us, to_us) while ZooKeeper has later ones: `missed`
    lists them in order.
    """

    broker: int
    partition: TopicPartition
    version: int
    from_us: int
    to_us: int
    missed: tuple[int, ...]


def is_older(known: Known, state: State) -> bool:
    """Whether the known version is older than this one."""
    return known.version < state.version or known.from_us < state.created_us


class Staleness:
    """Staleness of all brokers and partitions so far; times in microseconds."""

    def __init__(self, partitions: Partitions, caches: MetadataCaches, clock: Clock) -> None:
        self._partitions, self._caches, self._clock = partitions, caches, clock

    def of_entry(self, broker: int, known: Known) -> list[Stale]:
        """When this cache entry (metadata, or the controller's: broker 0) was stale."""
        partition = self._partitions.all.get(known.partition)
        if partition is None:
            return []
        history = partition.history
        first = max(bisect_right(history, known.from_us, key=lambda state: state.from_us) - 1, 0)
        last = bisect_right(history, known.to_us, key=lambda state: state.from_us)
        return list(self._pieces(broker, known, history[first:last]))

    def _pieces(self, broker: int, known: Known, states: list[State]) -> Iterator[Stale]:
        piece: list[tuple[int, int, int]] = []
        for state in states:
            start = max(state.from_us, known.from_us)
            end = min(state.to_us, known.to_us, self._clock.now_us)
            if start >= end:
                continue
            older = is_older(known, state)
            if piece and (not older or piece[-1][2] != start):
                yield _stale(broker, known, piece)
                piece = []
            if older:
                piece.append((state.version, start, end))
        if piece:
            yield _stale(broker, known, piece)

    def of(self, broker: int, name: TopicPartition) -> list[Stale]:
        """The stale intervals of the broker's cache, entry by entry."""
        spans = self._caches.spans(broker, name)
        return [stale for known in spans for stale in self.of_entry(broker, known)]

    def episodes(self, broker: int, name: TopicPartition) -> list[Interval]:
        """Stale intervals without a break: when one stale entry replaces another, the episode
        continues."""
        return merged((one.from_us, one.to_us) for one in self.of(broker, name))

    def is_stale(self, broker: int, name: TopicPartition) -> bool:
        """Whether the broker's metadata of the partition is stale now."""
        spans, partition = self._caches.spans(broker, name), self._partitions.all.get(name)
        if not spans or spans[-1].to_us != OPEN or partition is None or not partition.history:
            return False
        newest = partition.history[-1]
        return newest.to_us == OPEN and is_older(spans[-1], newest)

    def brokers(self, name: TopicPartition) -> list[int]:
        """Brokers that have ever had metadata of the partition."""
        return sorted(self._caches.history.get(name, {}))

    def longest_us(self, name: TopicPartition, broker: int) -> int:
        """The longest episode of one broker."""
        return max((end - start for start, end in self.episodes(broker, name)), default=0)

    def sum_us(self, name: TopicPartition, broker: int) -> int:
        """The sum of all episodes of one broker."""
        return sum(one.to_us - one.from_us for one in self.of(broker, name))

    @property
    def longest_of_all_us(self) -> int:
        """The longest episode of any partition and broker."""
        return max((self.longest_us(*pair) for pair in self._pairs), default=0)

    @property
    def sum_of_all_us(self) -> int:
        """The sum over all partitions and brokers."""
        return sum(self.sum_us(*pair) for pair in self._pairs)

    @property
    def _pairs(self) -> Iterator[tuple[TopicPartition, int]]:
        return ((name, broker) for name in self._caches.history for broker in self.brokers(name))


def _stale(broker: int, known: Known, piece: list[tuple[int, int, int]]) -> Stale:
    missed = tuple(version for version, _, _ in piece)
    return Stale(broker, known.partition, known.version, piece[0][1], piece[-1][2], missed)
