"""The partitions that a broker hosts, in the order in which Kafka goes through them.

Owns the order of `allPartitions`, a ConcurrentHashMap: which partition of a shrink pass waits for
ZooKeeper first decides what the others have seen by then. Knows nothing of partitions but their
names. Source: utils/Pool.scala@2.6.3, java.util.concurrent.ConcurrentHashMap; spec §6.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from emulator.trace.values import TopicPartition
from zk.scala.java_hash import spread
from zk.scala.scala_order import topic_partition_hash

V = TypeVar("V")
BUCKETS = 16


class Pool(dict[TopicPartition, V]):
    """A dict that can also be gone through in the order of its Java table, which doubles when it is
    three quarters full and never shrinks; those of one bucket are in the order of their coming."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets = BUCKETS
        self._ordered: list[V] | None = None

    def __setitem__(self, partition: TopicPartition, value: V) -> None:
        super().__setitem__(partition, value)
        self._ordered = None
        # ConcurrentHashMap doubles when its sizeCtl, 0.75 of the table, is reached.
        while len(self) >= self._buckets * 3 // 4:
            self._buckets *= 2

    def remove(self, partition: TopicPartition) -> V | None:
        """What was there, if anything."""
        self._ordered = None
        return self.pop(partition, None)

    def in_order(self) -> Iterator[V]:
        """What is there now; what comes meanwhile is not seen."""
        if self._ordered is None:
            # A stable sort: those of one bucket stay in the order of the dict, that of their
            # coming.
            mask = self._buckets - 1
            partitions = sorted(self, key=lambda p: spread(topic_partition_hash(*p)) & mask)
            self._ordered = [self[partition] for partition in partitions]
        return iter(self._ordered)
