"""`leaderPartitions`: the list of what this broker leads, which Kafka kept beside its partitions up
to 0.8.1, and the lock around it.

Owns both, each only where its guard is missing: the list that may differ from what partitions
themselves say (KAFKA-1483), the lock that isr-expiration held while it wrote to ZooKeeper
(KAFKA-947). Elsewhere a partition knows whether it is led, and nothing here costs anything.
Source: server/ReplicaManager.scala@0.8.1.1 makeLeaders, makeFollowers, maybeShrinkIsr.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.profiles.guards.isr import ROLES_KEPT_ONCE, SHRINKS_OUTSIDE_THE_LOCK
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition


class LeaderPartitions:
    """What isr-expiration takes for led."""

    def __init__(self, context: BrokerContext) -> None:
        self._listed = ROLES_KEPT_ONCE not in context.guards
        self.lock: Monitor | nullcontext[None] = nullcontext()
        """Held while a run of isr-expiration lasts."""
        if SHRINKS_OUTSIDE_THE_LOCK not in context.guards:
            self.lock = Monitor(context.kernel, "leaderPartitionsLock")
        self._partitions: dict[TopicPartition, None] = {}

    def has(self, partition: TopicPartition) -> bool:
        """Whether it is looked at: the list says so, or there is none."""
        # The list can lag behind the leaders: a LeaderAndIsr that fails midway has made leaders,
        # but lists none.
        return not self._listed or partition in self._partitions

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Called after a complete LeaderAndIsr: not before, and not if it failed midway."""
        async with self.lock:
            if self._listed:
                self._partitions.update(dict.fromkeys(partitions))

    async def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Before the first of them follows another leader."""
        async with self.lock:
            for partition in partitions:
                self._partitions.pop(partition, None)
