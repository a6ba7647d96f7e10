"""`replicas of orders-0 go [1, 2] -> [2, 3, 1] -> [2, 3]`: its assignments in ZooKeeper, in order.

Held when the topic's znode had exactly this sequence of assignments for the partition. A
reassignment first adds the new replicas and then removes the old ones. Unknown if the partition
does not exist.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition


class ReplicasHistory(Check):
    forms = ("replicas of {partition} go {isrs}",)
    partition: TopicPartition
    isrs: tuple[tuple[int, ...], ...]

    def at_end(self) -> Finding:
        history = self.state.topics.replica_history(self.partition)
        if not history:
            return Finding(None, "there is no such partition")
        shown = " -> ".join(str(list(replicas)) for replicas in history)
        return Finding(tuple(history) == self.isrs, shown)
