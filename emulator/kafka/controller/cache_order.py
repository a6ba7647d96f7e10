"""The order in which Kafka iterates over the controller's caches, and so asks ZooKeeper about
partitions (spec §6.15).

The caches are mutable HashMaps; what is selected from them is mostly an immutable Set, which keeps
the order of up to four members. Knows no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import NamedTuple

from emulator.kafka.profiles.base import Profile
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import java_hash
from zk.scala.library import LIBRARIES, immutable_set
from zk.scala.murmur import partition_and_replica_hash, topic_and_partition_hash
from zk.scala.scala_order import IMMUTABLE_SMALL, topic_partition_hash


class PartitionAndReplica(NamedTuple):
    """One replica of one partition."""

    partition: TopicPartition
    replica: int


class CacheOrder:
    """The orders of one Kafka version."""

    def __init__(self, profile: Profile) -> None:
        self._library = LIBRARIES[profile.scala]
        # Up to 1.0 the keys are case classes, and the maps are iterated themselves.
        self._is_one_by_one = profile.zookeeper_client == "zkclient"
        self._is_by_topic = profile.assignments == "by-topic"

    def of_map(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The keys of a mutable HashMap."""
        return self._library.map_order(partitions, self._hash)

    def assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """All assigned partitions: from 2.0 on in a Map of Maps by topic (partitionAssignments)."""
        if not self._is_by_topic:
            return self.of_map(partitions)
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        return [
            TopicPartition(topic, partition)
            for topic in self._library.map_order(by_topic, java_hash)
            for partition in self._library.map_order(by_topic[topic], int)
        ]

    def as_set(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """An immutable Set, or the keys of an immutable Map, to which these were added."""
        return list(immutable_set(partitions, self._library, self._hash)[0])

    def selected(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Some keys of a mutable HashMap."""
        selected = self.of_map(partitions)
        return selected if self._is_one_by_one else self.as_set(selected)

    def filtered(self, partitions: Iterable[TopicPartition], before: Sized) -> list[TopicPartition]:
        """What a filter leaves of an immutable Set or Map: a hash trie stays one, of its new
        members."""
        is_trie = len(before) > IMMUTABLE_SMALL
        return list(immutable_set(partitions, self._library, self._hash, is_trie=is_trie)[0])

    def collected(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """What filter or groupBy makes of all assigned partitions: up to 1.0 another mutable
        HashMap, because the map itself is filtered, then an immutable Set or Map."""
        return self.of_map(partitions) if self._is_one_by_one else self.as_set(partitions)

    def grouped(self, brokers: Iterable[int]) -> list[int]:
        """The keys of groupBy, which were first seen in this order."""
        return list(self._library.grouped_order(brokers, int))

    def replicas_as_set(self, replicas: Iterable[PartitionAndReplica]) -> list[PartitionAndReplica]:
        """An immutable Set to which these were added."""
        return list(immutable_set(replicas, self._library, self._replica_hash)[0])

    def replicas_collected(
        self, replicas: Iterable[PartitionAndReplica]
    ) -> list[PartitionAndReplica]:
        """A mutable HashSet to which these were added."""
        return self._library.set_order(replicas, self._replica_hash)

    def _hash(self, partition: TopicPartition) -> int:
        hash_of = topic_and_partition_hash if self._is_one_by_one else topic_partition_hash
        return hash_of(*partition)

    def _replica_hash(self, replica: PartitionAndReplica) -> int:
        partition, broker = replica
        if self._is_one_by_one:
            return partition_and_replica_hash(*partition, broker)
        fields = topic_partition_hash(*partition), broker
        return self._library.case_class_hash("PartitionAndReplica", fields)
