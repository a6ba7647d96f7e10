"""What the brokers' metadata caches show, beside what ZooKeeper has.

Owns propagation (from the write of an ISR to its arrival in each broker's cache, joined by
partition and zkVersion; a version that a later one overtook was *never shown*) and staleness (a
broker's entry is older than the znode). Clients see nothing but these caches.
"""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.values import PartitionState, TopicPartition


class Entry(msgspec.Struct):
    """What one broker's cache shows of one partition; since when that is old (None: it is not)."""

    version: int
    stale_since_us: int | None = None
    stale_us_max: int = 0
    stale_us_sum: int = 0


class Metadata:
    """All caches; times in microseconds."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        self.entries: dict[TopicPartition, dict[int, Entry]] = {}
        self.delays_us: list[int] = []
        self.never_shown = 0
        self.shown: dict[TopicPartition, set[int]] = {}
        partitions.listen(self._written)

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            self._taken(event.broker, state, event.t)
        for name in event.removed:
            self.entries.get(name, {}).pop(event.broker, None)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        """A new process has an empty cache."""
        for caches in self.entries.values():
            caches.pop(event.broker, None)

    def _written(self, partition: Partition, state: State) -> None:
        for entry in self.entries.get(partition.name, {}).values():
            if state.version < entry.version:  # deleted, and created anew
                entry.version = -1
            if entry.stale_since_us is None:
                entry.stale_since_us = state.t_us

    def _taken(self, broker: int, state: PartitionState, t_us: int) -> None:
        name, version = state.partition, state.zk_version
        partition = self.partitions.of(name)
        caches = self.entries.setdefault(name, {})
        entry = caches.get(broker)
        self.shown.setdefault(name, set()).add(version)
        if entry is None:
            entry = caches[broker] = Entry(version)
        elif version > entry.version:
            self._propagated(partition, entry.version, version, t_us)
        entry.version = version
        self._fresh_or_stale(partition, entry, t_us)

    def _propagated(self, partition: Partition, before: int, version: int, t_us: int) -> None:
        """A cache goes from one version to a later one: what lies between is not shown any more."""
        for state in reversed(partition.states):
            if state.version <= before:
                return
            if state.isr_change and state.version == version:
                self.delays_us.append(t_us - state.t_us)
            elif state.isr_change and state.version < version:
                self.never_shown += 1

    def _fresh_or_stale(self, partition: Partition, entry: Entry, t_us: int) -> None:
        now = partition.now
        if now is None or entry.version >= now.version:
            _close(entry, t_us)
        elif entry.stale_since_us is None:
            entry.stale_since_us = t_us

    def stale_us(self, name: TopicPartition, broker: int, end_us: int) -> int:
        """The longest time for which this broker's entry was older than the znode."""
        entry = self.entries.get(name, {}).get(broker)
        if entry is None:
            return 0
        running = 0 if entry.stale_since_us is None else end_us - entry.stale_since_us
        return max(entry.stale_us_max, running)

    def stale_us_max(self, end_us: int) -> int:
        """The longest of all such times."""
        pairs = [(name, broker) for name, caches in self.entries.items() for broker in caches]
        return max((self.stale_us(name, broker, end_us) for name, broker in pairs), default=0)

    def stale_us_sum(self, end_us: int) -> int:
        """All such times together, over partitions and brokers."""
        entries = [entry for caches in self.entries.values() for entry in caches.values()]
        running = (
            end_us - entry.stale_since_us for entry in entries if entry.stale_since_us is not None
        )
        return sum(entry.stale_us_sum for entry in entries) + sum(running)

    def awaited(self) -> int:
        """Versions that some cache has yet to show (or to skip): counted per broker."""
        return sum(
            state.isr_change and state.version > entry.version
            for name, caches in self.entries.items()
            for entry in caches.values()
            if entry.stale_since_us is not None
            for state in self.partitions.of(name).states
        )


def _close(entry: Entry, t_us: int) -> None:
    if entry.stale_since_us is not None:
        entry.stale_us_max = max(entry.stale_us_max, t_us - entry.stale_since_us)
        entry.stale_us_sum += t_us - entry.stale_since_us
        entry.stale_since_us = None
