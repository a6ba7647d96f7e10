"""`leaderPartitions`: the list of led partitions that Kafka kept in addition to the partitions up
to 0.8.1, and its lock.

Each is used only without its guard: the list, which may differ from the partitions' own roles
(KAFKA-1483), and the lock, which isr-expiration held while it wrote to ZooKeeper (KAFKA-947). With
the guards a partition knows its role, and this class costs nothing. Source:
server/ReplicaManager.scala@0.8.1.1 makeLeaders, makeFollowers, maybeShrinkIsr.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.profiles.guards.isr import ROLES_KEPT_ONCE, SHRINKS_OUTSIDE_THE_LOCK
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition


class LeaderPartitions:
    """The partitions that isr-expiration treats as led."""

    def __init__(self, context: BrokerContext) -> None:
        self._listed = ROLES_KEPT_ONCE not in context.guards
        self.lock: Monitor | nullcontext[None] = nullcontext()
        """Held for a whole run of isr-expiration."""
        if SHRINKS_OUTSIDE_THE_LOCK not in context.guards:
            self.lock = Monitor(context.kernel, "leaderPartitionsLock")
        self._partitions: dict[TopicPartition, None] = {}

    def has(self, partition: TopicPartition) -> bool:
        """Whether isr-expiration checks the partition: it is listed, or there is no list."""
        # The list can differ from the roles: a LeaderAndIsr that fails midway has made leaders but
        # lists none.
        return not self._listed or partition in self._partitions

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Called after a complete LeaderAndIsr; not called if it failed midway."""
        async with self.lock:
            if self._listed:
                self._partitions.update(dict.fromkeys(partitions))

    async def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Called before the first of them follows another leader."""
        async with self.lock:
            for partition in partitions:
                self._partitions.pop(partition, None)
