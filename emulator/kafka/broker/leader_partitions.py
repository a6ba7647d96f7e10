"""`leaderPartitions`: the list of what this broker leads, which Kafka kept beside its partitions up
to 0.8.1, and the lock around it.

Owns both, each only where its guard is missing: the list that may differ from what partitions
themselves say (KAFKA-1483), the lock that isr-expiration held while it wrote to ZooKeeper
(KAFKA-947). Elsewhere a partition knows whether it is led, and nothing here costs anything.
Source: server/ReplicaManager.scala@0.8.1.1 makeLeaders, makeFollowers, maybeShrinkIsr.
"""

from __future__ import annotations

from collections.abc import Iterable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.profiles.guards.isr import ROLES_KEPT_ONCE, SHRINKS_OUTSIDE_THE_LOCK
from emulator.kernel.sync import Monitor
from emulator.trace.values import TopicPartition


class LeaderPartitions:
    """What isr-expiration takes for led."""

    def __init__(self, context: BrokerContext) -> None:
        self._listed = ROLES_KEPT_ONCE not in context.guards
        self._locked = SHRINKS_OUTSIDE_THE_LOCK not in context.guards
        self._lock = Monitor(context.kernel, "leaderPartitionsLock")
        self._led: dict[TopicPartition, None] = {}

    def has(self, partition: TopicPartition) -> bool:
        """Whether it is looked at: the list says so, or there is none."""
        return not self._listed or partition in self._led

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """When a whole LeaderAndIsr has made them led: not before, and not if it was broken off."""
        await self.lock()
        if self._listed:
            self._led.update(dict.fromkeys(partitions))
        self.unlock()

    async def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Before the first of them follows another leader."""
        await self.lock()
        for partition in partitions:
            self._led.pop(partition, None)
        self.unlock()

    async def lock(self) -> None:
        """While a run of isr-expiration lasts."""
        if self._locked:
            await self._lock.enter()

    def unlock(self) -> None:
        """Behind `lock`, by the same thread."""
        if self._locked:
            self._lock.leave()
