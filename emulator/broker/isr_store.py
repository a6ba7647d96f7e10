"""How a leader makes an ISR change durable: the strategy that differs between the ZooKeeper path
and AlterIsr.

The ZooKeeper path (<= 2.6): a conditional write by the leader itself, synchronous, under the
partition's write lock. Source: cluster/Partition.scala@2.6.3 ZkPartitionStateStore,
utils/ReplicationUtils.scala@2.6.3; spec §2.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from emulator.trace.values import TopicPartition
from zk.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch
from zk.kafka_zk_client import KafkaZkClient, Rejected, Updated


class IsrStore(Protocol):
    """Writes a changed ISR; Updated(zk_version), or Rejected and the leader keeps what it had."""

    async def update(
        self, partition: TopicPartition, state: LeaderAndIsr, controller_epoch: int
    ) -> Updated | Rejected: ...


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
        """`controller_epoch` is the deciding one, from LeaderAndIsr, not the newest heard of."""
        result = await self._zk_client.update_isr(
            partition, LeaderIsrAndControllerEpoch(state, controller_epoch)
        )
        if isinstance(result, Updated):
            await self._record_isr_change(partition)
        return result
