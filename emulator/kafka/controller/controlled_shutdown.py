"""A broker that is about to stop: its leaderships move, its replicas leave the ISR.

Owns the order of the steps; elections and ISR removals are the state machines'.
Source: controller/KafkaController.scala@2.6.3 doControlledShutdown; spec §6.11.
"""

from __future__ import annotations

from emulator.kafka.controller.context import (
    UNKNOWN_BROKER_EPOCH,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.trace.values import TopicPartition


async def shut_down(
    parts: ControllerParts, broker: int, broker_epoch: int
) -> tuple[TopicPartition, ...]:
    """The partitions that `broker` still leads afterwards; KafkaError when it is not known, or
    an older incarnation asks."""
    context, partitions = parts.context, parts.partitions
    live = context.live_brokers.get(broker)
    if live is None:
        # With an epoch its look-up in the cache fails first, and is not an error of Kafka's API.
        has_epoch = broker_epoch != UNKNOWN_BROKER_EPOCH
        raise KafkaError(Errors.UNKNOWN_SERVER_ERROR if has_epoch else Errors.BROKER_NOT_AVAILABLE)
    if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < live[1]:
        raise KafkaError(Errors.STALE_BROKER_EPOCH)
    # Until its registration goes: it may not be elected from now on, but is still sent requests.
    context.shutting_down[broker] = None

    def leads(partition: TopicPartition) -> bool:
        return context.leadership[partition].leader_and_isr.leader == broker

    def may_move(partition: TopicPartition) -> bool:
        return (
            len(context.replicas(partition)) > 1
            and partition.topic not in context.topics_to_be_deleted
        )

    hosted = [
        p for p in context.partitions_on_broker(broker) if p in context.leadership and may_move(p)
    ]
    leading = [p for p in hosted if leads(p)]
    followed = [p for p in hosted if not leads(p)]
    await partitions.handle_state_changes(
        leading, PartitionState.ONLINE, partitions.controlled_shutdown_strategy
    )
    if leading:
        await parts.host.kernel.checkpoint("leaders_moved")

    def stop(batch: ControllerBrokerRequestBatch) -> None:
        for partition in followed:
            batch.add_stop_replica([broker], partition, delete=False)

    await parts.send(stop)
    # Only this raises the leader epoch, and only where the replica is in the ISR. From 2.6 on the
    # broker ignores the StopReplica, whose epoch it has already: what ends its fetching is that its
    # next fetch is fenced (spec §6.11).
    leaving = [PartitionAndReplica(p, broker) for p in followed]
    await parts.replicas.handle_state_changes(leaving, ReplicaState.OFFLINE)
    await parts.host.kernel.checkpoint("broker_may_go")
    return tuple(p for p in context.leadership if leads(p) and may_move(p))
