"""`replicas of orders-0 go [1, 2] -> [2, 3, 1] -> [2, 3]`: its assignments in ZooKeeper, in order.

Held when the topic's znode had exactly these for the partition, one after the other; a reassignment
first adds the new replicas and then takes the old ones away. Unknown without the partition.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition


class ReplicasHistory(Check):
    """A partition that moves."""

    forms = ("replicas of {partition} go {isrs}",)
    partition: TopicPartition
    isrs: tuple[tuple[int, ...], ...]

    def at_end(self) -> Finding:
        history = self.state.topics.replica_history(self.partition)
        if not history:
            return Finding(None, "there is no such partition")
        shown = " -> ".join(str(list(replicas)) for replicas in history)
        return Finding(tuple(history) == self.isrs, shown)
