"""How a leader makes an ISR change durable: the part that differs between versions and paths.

Up to 2.7 on the ZooKeeper path it is a conditional write by the leader, which blocks while it holds
the partition's write lock; after a failure the leader keeps its old state. With AlterIsr, and from
2.8 on the ZooKeeper path too, the leader submits an item and the state is pending until the item's
callback. Source: cluster/Partition.scala@2.6.3 ZkPartitionStateStore,
utils/ReplicationUtils.scala@2.6.3, server/AlterIsrManager.scala@2.7.2,
server/ZkIsrManager.scala@2.8.2; spec §2.3, §7.2, §7.6.
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
"""The partition's current state, or why it was not changed."""


class AlterIsrItem(NamedTuple):
    """One partition's proposal: the new state with the version that it replaces, and the
    callback."""

    partition: TopicPartition
    leader_and_isr: LeaderAndIsr
    answered: Callable[[Answer], Awaitable[None]]
    controller_epoch: int
    member_epochs: tuple[int, ...] = ()


class AlterIsrManager(Protocol):
    """Accepts proposals, one per partition; the response arrives through the item's callback."""

    def enqueue(self, item: AlterIsrItem) -> bool:
        """Add an item; False if the partition already has one."""
        ...

    async def propagate(self, item: AlterIsrItem) -> None:
        """The item was added and its partition is pending: send it, if it can be sent now."""
        ...

    def clear_pending(self, partition: TopicPartition) -> None:
        """A LeaderAndIsr has replaced the proposal."""
        ...


class ZkIsrStore:
    """The leader's own conditional write, and the record for a later notification."""

    def __init__(
        self,
        zk_client: KafkaZkClient,
        record_isr_change: Callable[[TopicPartition], Awaitable[None]],
    ) -> None:
        self._zk_client, self._record_isr_change = zk_client, record_isr_change

    async def update(
        self, partition: TopicPartition, state: LeaderAndIsr, controller_epoch: int
    ) -> Updated | Rejected:
        """Returns Updated(zk_version), or Rejected: the leader then keeps its state.
        `controller_epoch` is the one from the partition's LeaderAndIsr, not the newest that the
        broker knows.
        """
        result = await self._zk_client.update_isr(
            partition, LeaderIsrAndControllerEpoch(state, controller_epoch)
        )
        # Still under the write lock: recording waits while a notification is being written.
        if isinstance(result, Updated):
            await self._record_isr_change(partition)
        return result


class ZkIsrManager:
    """The ZooKeeper path from 2.8 on: the same write, with the callback before `propagate` returns,
    unless the write raises an exception."""

    def __init__(self, store: ZkIsrStore) -> None:
        self._store = store

    def enqueue(self, item: AlterIsrItem) -> bool:
        """Always accepts; the callback reports the result."""
        return True

    async def propagate(self, item: AlterIsrItem) -> None:
        # If the write raises an exception there is no callback: the partition stays pending until
        # the next LeaderAndIsr (spec §7.6).
        state = item.leader_and_isr
        result = await self._store.update(item.partition, state, item.controller_epoch)
        if isinstance(result, Updated):
            await item.answered(msgspec.structs.replace(state, zk_version=result.zk_version))
        else:
            await item.answered(Errors.INVALID_UPDATE_VERSION)

    def clear_pending(self, partition: TopicPartition) -> None:
        """Does nothing: no item is stored here."""


IsrStore = ZkIsrStore | AlterIsrManager


def zk_isr_store(
    zk_client: KafkaZkClient,
    record_isr_change: Callable[[TopicPartition], Awaitable[None]],
    guards: Container[Guard],
) -> IsrStore:
    """The leader's own writes; from 2.8 on behind the interface of AlterIsr."""
    store = ZkIsrStore(zk_client, record_isr_change)
    return ZkIsrManager(store) if ONE_ISR_STATE_MACHINE in guards else store
