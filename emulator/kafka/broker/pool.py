"""The partitions that a broker hosts, in Kafka's iteration order.

Owns the order of `allPartitions`, a ConcurrentHashMap. The order matters: in a shrink pass the
partition that waits for ZooKeeper first delays the others. Source: utils/Pool.scala@2.6.3,
java.util.concurrent.ConcurrentHashMap; spec §6.15.
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
    """A dict that also has the order of its Java table. The table doubles when it is three quarters
    full and never shrinks; elements of one bucket are in insertion order."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets = BUCKETS
        self._ordered: list[V] | None = None

    def __setitem__(self, partition: TopicPartition, value: V) -> None:
        super().__setitem__(partition, value)
        self._ordered = None
        # ConcurrentHashMap doubles when it reaches sizeCtl, 0.75 of the table.
        while len(self) >= self._buckets * 3 // 4:
            self._buckets *= 2

    def remove(self, partition: TopicPartition) -> V | None:
        """Remove and return the partition, if it exists."""
        self._ordered = None
        return self.pop(partition, None)

    def in_order(self) -> Iterator[V]:
        """The present elements; later additions are not included."""
        if self._ordered is None:
            # A stable sort: elements of one bucket stay in the dict's order, which is insertion
            # order.
            mask = self._buckets - 1
            partitions = sorted(self, key=lambda p: spread(topic_partition_hash(*p)) & mask)
            self._ordered = [self[partition] for partition in partitions]
        return iter(self._ordered)
