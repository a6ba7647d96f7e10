"""The order of a leader's ISR: that of Kafka's immutable Set.

The order reaches the state znode, AlterIsr and the log. Up to four members keep their order. Five
form a hash trie, which stays a trie when it shrinks, until a LeaderAndIsr or a response brings a
new set. Source: cluster/Partition.scala@2.6.3 inSyncReplicaIds, @1.0.2 inSyncReplicas.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.kafka.profiles.base import Profile
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import java_hash
from zk.scala.library import LIBRARIES, immutable_set
from zk.scala.scala_order import topic_partition_hash

_MASK = 0xFFFFFFFF


class IsrOrder:
    """The sets of one partition's ISR in one version."""

    def __init__(self, profile: Profile, partition: TopicPartition) -> None:
        self._library = LIBRARIES[profile.scala]
        self._members = profile.isr_members
        topic, number = partition
        # Replica.hashCode: 31 + the partition's + 17 * the broker's id.
        self._base = 31 + topic_partition_hash(topic, number)
        if self._members == "replicas-0.9":
            self._base = 31 + java_hash(topic) + (31 + java_hash(topic) + 17 * number)

    def set_of(
        self, brokers: Iterable[int], *, is_trie: bool = False
    ) -> tuple[tuple[int, ...], bool]:
        """The Set of these brokers, added one by one. With `is_trie` it derives from a trie by
        additions at the end and removals."""
        library = self._library
        if self._members == "ids":
            return immutable_set(brokers, library, self._id_hash, is_trie=is_trie)
        # A Set of Replica objects; what is written is a Set of their ids, built in that order.
        replicas, is_trie = immutable_set(brokers, library, self._replica_hash, is_trie=is_trie)
        return immutable_set(replicas, library, self._id_hash)[0], is_trie

    def _id_hash(self, broker: int) -> int:
        return broker & _MASK

    def _replica_hash(self, broker: int) -> int:
        return self._base + 17 * broker & _MASK
