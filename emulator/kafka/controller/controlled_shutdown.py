"""A broker that is about to stop: its leaderships move, its replicas leave the ISR.

Owns the order of the steps; elections and ISR removals are the state machines'.
Source: controller/KafkaController.scala@2.6.3 doControlledShutdown; spec §6.11.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.context import (
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from emulator.kafka.controller.machinery import Machinery
from emulator.kafka.controller.ports import Host
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.trace.values import TopicPartition

UNKNOWN_BROKER_EPOCH = -1


class ControlledShutdowns:
    """What the controller does for brokers that announce their end."""

    def __init__(self, host: Host, machinery: Machinery) -> None:
        self._host = host
        self._machinery, self._context = machinery, machinery.context
        self._partitions, self._replicas = machinery.partitions, machinery.replicas

    async def shut_down(self, broker: int, broker_epoch: int) -> tuple[TopicPartition, ...]:
        """The partitions that `broker` still leads afterwards; KafkaError when it is not known, or
        an older incarnation asks."""
        self._check(broker, broker_epoch)
        self._context.shutting_down[broker] = None
        mine = [
            p
            for p in self._context.partitions_on_broker(broker)
            if len(self._context.replicas(p)) > 1
            and p in self._context.leadership
            and p.topic not in self._context.topics_to_be_deleted
        ]
        led = [p for p in mine if self._leads(broker, p)]
        followed = [p for p in mine if not self._leads(broker, p)]
        await self._partitions.handle_state_changes(
            led, PartitionState.ONLINE, self._partitions.controlled_shutdown_strategy
        )
        if led:
            await self._host.kernel.checkpoint("leaders_moved")
        await self._machinery.send(lambda batch: self._stop(batch, broker, followed))
        leaving = [PartitionAndReplica(p, broker) for p in followed]
        await self._replicas.handle_state_changes(leaving, ReplicaState.OFFLINE)
        await self._host.kernel.checkpoint("broker_may_go")
        return tuple(
            p
            for p in self._context.leadership
            if self._leads(broker, p)
            and len(self._context.replicas(p)) > 1
            and p.topic not in self._context.topics_to_be_deleted
        )

    def _stop(
        self,
        batch: ControllerBrokerRequestBatch,
        broker: int,
        followed: Sequence[TopicPartition],
    ) -> None:
        for partition in followed:
            batch.add_stop_replica([broker], partition, delete=False)

    def _check(self, broker: int, broker_epoch: int) -> None:
        known = self._context.live_brokers.get(broker)
        if known is None:
            unknown = broker_epoch == UNKNOWN_BROKER_EPOCH
            raise KafkaError(
                Errors.BROKER_NOT_AVAILABLE if unknown else Errors.UNKNOWN_SERVER_ERROR
            )
        if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < known[1]:
            raise KafkaError(Errors.STALE_BROKER_EPOCH)

    def _leads(self, broker: int, partition: TopicPartition) -> bool:
        return self._context.leadership[partition].leader_and_isr.leader == broker
