"""How a leader makes an ISR change durable: the strategy that differs between versions and paths.

Up to 2.7 on the ZooKeeper path: a conditional write by the leader itself, synchronous, under the
partition's write lock; a failure leaves everything as it was. With AlterIsr, and from 2.8 on the
ZooKeeper path too: an item is submitted, the state is pending until the item's callback.
Source: cluster/Partition.scala@2.6.3 ZkPartitionStateStore, utils/ReplicationUtils.scala@2.6.3,
server/AlterIsrManager.scala@2.7.2, server/ZkIsrManager.scala@2.8.2; spec §2.3, §7.2, §7.6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from typing import NamedTuple, Protocol

import msgspec

from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.alter_isr import ONE_ISR_STATE_MACHINE
from emulator.kafka.profiles.guards.base import Guard
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch
from zk.client.kafka_zk_client import KafkaZkClient, Rejected, Updated

Answer = LeaderAndIsr | Errors
"""The partition's state as it is now, or why it was not changed."""


class AlterIsrItem(NamedTuple):
    """One partition's proposal: the state with the version that it replaces, and who waits."""

    partition: TopicPartition
    leader_and_isr: LeaderAndIsr
    answered: Callable[[Answer], Awaitable[None]]
    controller_epoch: int
    member_epochs: tuple[int, ...] = ()


class AlterIsrManager(Protocol):
    """Takes proposals, one per partition; the answer comes through the item's callback."""

    def enqueue(self, item: AlterIsrItem) -> bool:
        """False: the partition has one already."""
        ...

    async def propagate(self, item: AlterIsrItem) -> None:
        """The item is enqueued and its partition pending: do what is to be done at once."""
        ...

    def clear_pending(self, partition: TopicPartition) -> None:
        """A LeaderAndIsr has ended what was proposed."""
        ...


class ZkIsrStore:
    """The leader's own conditional write, and the record for later notification."""

    def __init__(
        self,
        zk_client: KafkaZkClient,
        record_isr_change: Callable[[TopicPartition], Awaitable[None]],
    ) -> None:
        self._zk_client, self._record_isr_change = zk_client, record_isr_change

    async def update(
        self, partition: TopicPartition, state: LeaderAndIsr, controller_epoch: int
    ) -> Updated | Rejected:
        """Updated(zk_version), or Rejected and the leader keeps what it had. `controller_epoch` is
        the deciding one, from LeaderAndIsr, not the newest heard of."""
        result = await self._zk_client.update_isr(
            partition, LeaderIsrAndControllerEpoch(state, controller_epoch)
        )
        # Under the write lock still: where a notification is being written, recording waits for it.
        if isinstance(result, Updated):
            await self._record_isr_change(partition)
        return result


class ZkIsrManager:
    """2.8 and later on the ZooKeeper path: the same write, with the callback before `propagate`
    returns, unless the write throws."""

    def __init__(self, store: ZkIsrStore) -> None:
        self._store = store

    def enqueue(self, item: AlterIsrItem) -> bool:
        """Always: what becomes of it the callback says."""
        return True

    async def propagate(self, item: AlterIsrItem) -> None:
        # A write that throws calls nobody back, so the partition stays pending until the next
        # LeaderAndIsr (spec §7.6).
        state = item.leader_and_isr
        result = await self._store.update(item.partition, state, item.controller_epoch)
        if isinstance(result, Updated):
            await item.answered(msgspec.structs.replace(state, zk_version=result.zk_version))
        else:
            await item.answered(Errors.INVALID_UPDATE_VERSION)

    def clear_pending(self, partition: TopicPartition) -> None:
        """Nothing waits here."""


IsrStore = ZkIsrStore | AlterIsrManager


def zk_isr_store(
    zk_client: KafkaZkClient,
    record_isr_change: Callable[[TopicPartition], Awaitable[None]],
    guards: Container[Guard],
) -> IsrStore:
    """The leader's own writes; from 2.8 on behind the port of AlterIsr."""
    store = ZkIsrStore(zk_client, record_isr_change)
    return ZkIsrManager(store) if ONE_ISR_STATE_MACHINE in guards else store
