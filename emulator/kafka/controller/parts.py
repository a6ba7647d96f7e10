"""What all parts of a controller share: context, state machines, request batches, channels.

This module itself only sends the requests that belong to no transition. Each state machine has its
own batch, as in Kafka. Source: the fields of controller/KafkaController.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from emulator.kafka.controller.cache_order import CacheOrder
from emulator.kafka.controller.channel_manager import ControllerChannelManager
from emulator.kafka.controller.context import ControllerContext
from emulator.kafka.controller.errors import IllegalState
from emulator.kafka.controller.partition_state_machine import PartitionStateMachine
from emulator.kafka.controller.ports import Host
from emulator.kafka.controller.replica_state_machine import ReplicaStateMachine
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.protocol.messages import (
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from emulator.kafka.protocol.transport import Network
from emulator.trace.values import TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient


class PutIfActive(Protocol):
    """Queues an event that only an active controller processes. Up to 0.10.1 a listener that fires
    when the controller has resigned still does `late` (KAFKA-4447)."""

    def __call__(
        self,
        name: str,
        process: Callable[[], Awaitable[object]],
        late: Callable[[], Awaitable[object]] | None = None,
    ) -> None: ...


class ControllerParts:
    """The shared parts of one controller."""

    def __init__(
        self,
        host: Host,
        zk_client: KafkaZkClient,
        network: Network,
        *,
        put_if_active: PutIfActive,
        leader_and_isr_answered: Callable[[int, LeaderAndIsrResponse], None],
        update_metadata_answered: Callable[[int, UpdateMetadataResponse], None],
        deletion_answered: Callable[[int, StopReplicaResponse], None],
        force_move: Callable[[], Awaitable[None]],
    ) -> None:
        """`force_move` gives up `/controller` (triggerControllerMove)."""
        self.host, self.zk_client = host, zk_client
        self.put_if_active = put_if_active
        self.context = ControllerContext(CacheOrder(host.profile))
        self.channels = ControllerChannelManager(host, network)
        self._force_move = force_move

        def batch() -> ControllerBrokerRequestBatch:
            return ControllerBrokerRequestBatch(
                host,
                self.context,
                self.channels,
                leader_and_isr_answered,
                update_metadata_answered,
                deletion_answered,
            )

        self.batch = batch()
        self.partitions = PartitionStateMachine(host, self.context, zk_client, batch())
        self.replicas = ReplicaStateMachine(host, self.context, zk_client, batch(), self.partitions)

    async def send(self, fill: Callable[[ControllerBrokerRequestBatch], None]) -> None:
        """Send one batch of the controller's own; if the batch does not start empty, the controller
        gives up (handleIllegalState)."""
        try:
            self.batch.new_batch()
            fill(self.batch)
            await self.batch.send(self.context.epoch)
        except IllegalState:
            # Unlike the state machines' batches, this one is emptied: another broker becomes
            # controller.
            self.batch.clear()
            await self._force_move()
            raise

    async def send_update_metadata(
        self, brokers: Sequence[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Send one UpdateMetadata with these partitions; without partitions it has only the live
        brokers and the controller."""
        await self.send(lambda batch: batch.add_update_metadata(brokers, partitions))

    async def send_update_metadata_to_all(self, partitions: Iterable[TopicPartition]) -> None:
        """Send the same UpdateMetadata to every live broker."""
        await self.send_update_metadata(self.context.live_or_shutting_down, partitions)

    async def update_leadership_cache(self, partitions: Sequence[TopicPartition], why: str) -> None:
        """Read state znodes into the leadership cache (updateLeaderAndIsrCache)."""
        states = await self.zk_client.get_topic_partition_states(partitions)
        for partition, state in states.items():
            self.partitions.cache(partition, state, why)
