"""The fetch state of each partition, and the assignment of partitions to fetcher threads.

Plain values that the manager and its threads change; they know neither thread nor connection.
Sources: server/AbstractFetcherManager.scala@2.6.3 getFetcherId, server/AbstractFetcherThread.scala
PartitionFetchState, InitialFetchState, clients/…/internals/PartitionStates.java; spec §5.1, §5.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from emulator.kafka.profiles.base import HASH_MAPS, Profile
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import hash_set_order, in_buckets, java_hash, list_hash
from zk.scala.library import LIBRARIES, immutable_set
from zk.scala.murmur import topic_and_partition_hash
from zk.scala.scala_order import topic_partition_hash


def fetcher_id(partition: TopicPartition, num_fetchers: int) -> int:
    """abs(31 x hash(topic) + partition) mod the number of fetchers, in wrapping 32-bit arithmetic;
    the absolute value of the smallest integer is 0 (Utils.abs)."""
    h = (31 * java_hash(partition.topic) + partition.partition) & 0xFFFFFFFF
    # Java's int wraps around, which affects the choice of the thread.
    signed = h - (1 << 32) if h >= 1 << 31 else h
    return 0 if signed == -(1 << 31) else abs(signed) % num_fetchers


def fetcher_hash(leader: LiveBroker, number: int, profile: Profile) -> int:
    """The hash of BrokerAndFetcherId(leader, number)."""
    case_class_hash = LIBRARIES[profile.scala].case_class_hash
    return case_class_hash("BrokerAndFetcherId", (end_point_hash(leader, profile), number))


def end_point_hash(leader: LiveBroker, profile: Profile) -> int:
    """The hash of the leader's address."""
    address = (leader.broker, java_hash(leader.host), leader.port)
    if profile.leaders_in_request:
        return list_hash(address)  # Broker.scala@0.8.2.2 has a hashCode of its own
    return LIBRARIES[profile.scala].case_class_hash("BrokerEndPoint", address)


class InitialFetchState(NamedTuple):
    """The start of a partition in a fetcher: leader, leader epoch and offset. The offset is the
    local high watermark; up to 0.10.2 it is the log end, after a truncation to the high watermark.
    """

    leader: LiveBroker
    current_leader_epoch: int
    init_offset: int
    truncating: bool = True


@dataclass(slots=True)
class PartitionFetchState:
    """One partition in a fetcher thread; `delayed_until_us` 0 means not delayed."""

    fetch_offset: int
    lag: int | None
    current_leader_epoch: int
    delayed_until_us: int
    truncating: bool

    def is_delayed(self, now_us: int) -> bool:
        return self.delayed_until_us > now_us

    def is_ready_for_fetch(self, now_us: int) -> bool:
        return not self.truncating and self.delayed_until_us <= now_us

    @property
    def is_replica_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0


class PartitionStates(dict[TopicPartition, PartitionFetchState]):
    """The partitions of one thread in the order of its requests. Kafka checks all of them for each
    request; this class records which may have changed since the last one."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._order, self._library = profile.fetch_order, LIBRARIES[profile.scala]
        self.in_hash_map = profile.fetch_order in HASH_MAPS
        """Whether requests have an order of their own, too (`request_order`)."""
        self._inserted: dict[TopicPartition, None] = {}
        """In the order of additions, which decides among the keys of one HashMap bucket."""
        self.changed: dict[TopicPartition, None] = {}
        """Partitions whose offset, and nothing else, has changed since the last request..."""
        self.has_other_changes = True
        """... unless partitions were added, removed, or are not ready to be fetched."""

    def set_fetch_offset(self, partition: TopicPartition, offset: int) -> None:
        """The next request fetches from this offset."""
        self[partition].fetch_offset = offset
        self.changed[partition] = None

    def update_and_move_to_end(self, partition: TopicPartition, state: PartitionFetchState) -> None:
        if not self.in_hash_map:
            # A dict keeps the place of an existing key, as a HashMap does.
            self.pop(partition, None)
        self[partition] = state

    def remove(self, partition: TopicPartition) -> None:
        self.pop(partition, None)
        self._inserted.pop(partition, None)
        # The next request has to remove the partition from the session.
        self.has_other_changes = True

    def added(self) -> None:
        """Reorder after additions: a HashMap (up to 0.9), or all are set again (up to 2.0)."""
        if self._order == "rebuilt":
            self.rebuild()
        elif self.in_hash_map:
            self._inserted |= dict.fromkeys(self)  # known ones stay where they are
            keys = self._library.map_order(
                self._inserted, lambda key: topic_and_partition_hash(*key)
            )
            self._reorder((key, self[key]) for key in keys)

    def error_order(self, partitions: Iterable[TopicPartition]) -> Iterable[TopicPartition]:
        """The order of a thread's partitionsWithError, in which they are moved to the end."""
        if self.in_hash_map:
            return partitions  # in any order: a HashMap keeps their places
        return self._library.set_order(partitions, lambda key: topic_partition_hash(*key))

    def rebuild(self) -> None:
        """Reorder after a truncation round (PartitionStates.set): a topic's partitions come
        together, at the place of the first of them in a Map of all of them."""
        if self.in_hash_map:
            return
        if self._order in ("hashed", "topic-ids"):
            items = self._library.map_order(self.items(), _hash_of)
        else:
            items = list(immutable_set(self.items(), self._library, _hash_of)[0])
        topics: dict[str, list[tuple[TopicPartition, PartitionFetchState]]] = {}
        for partition, state in items:
            topics.setdefault(partition.topic, []).append((partition, state))
        self._reorder(item for group in topics.values() for item in group)

    def request_order(self, partitions: Iterable[TopicPartition]) -> Iterable[TopicPartition]:
        """Up to 0.9: the order in which a leader reads these partitions, which are in this thread's
        order."""
        topics: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition)
        if self._order == "java-hash-map":
            names = hash_set_order(topics)
            listed = [
                partition
                for name in names
                for partition in in_buckets(topics[name], lambda p: p.partition)
            ]
        else:
            names = self._library.grouped_order(topics, java_hash)
            listed = [partition for name in names for partition in topics[name]]
        # The leader puts what it reads from the request into an immutable Map.
        of_leader = immutable_set(
            listed, self._library, lambda partition: topic_and_partition_hash(*partition)
        )
        return of_leader[0]

    def _reorder(self, items: Iterable[tuple[TopicPartition, PartitionFetchState]]) -> None:
        ordered = list(items)
        self.clear()
        self.update(ordered)


def _hash_of(item: tuple[TopicPartition, PartitionFetchState]) -> int:
    return topic_partition_hash(*item[0])
