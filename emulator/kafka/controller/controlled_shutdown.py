"""Controlled shutdown: a broker's leaderships move, and its replicas leave the ISR.

Owns the order of the steps; the state machines do the elections and ISR removals. Source:
controller/KafkaController.scala@2.6.3 and @1.0.2 doControlledShutdown; spec §6.11.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import UNKNOWN_BROKER_EPOCH, PartitionState, ReplicaState
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.trace.values import TopicPartition
from zk.scala.library import LIBRARIES, immutable_set
from zk.scala.murmur import product_hash, topic_and_partition_hash


async def shut_down(
    parts: ControllerParts, broker: int, broker_epoch: int
) -> tuple[TopicPartition, ...]:
    """The partitions that `broker` still leads afterwards. KafkaError when the broker is unknown,
    or an earlier process of it sends the request."""
    context = parts.context
    live = context.live_brokers.get(broker)
    if live is None:
        # With an epoch, Kafka's look-up of the cached epoch fails first, with an exception that is
        # not an API error.
        has_epoch = broker_epoch != UNKNOWN_BROKER_EPOCH
        raise KafkaError(Errors.UNKNOWN_SERVER_ERROR if has_epoch else Errors.BROKER_NOT_AVAILABLE)
    if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < live[1]:
        raise KafkaError(Errors.STALE_BROKER_EPOCH)
    # Set until the registration goes: the broker is not elected from now on but still gets
    # requests.
    context.shutting_down[broker] = None

    def leads(partition: TopicPartition) -> bool:
        return context.leadership[partition].leader_and_isr.leader == broker

    # A partition with a single replica cannot move, and does not delay the broker's stop.
    def may_move(partition: TopicPartition) -> bool:
        return len(context.replicas(partition)) > 1 and (
            one_by_one or partition.topic not in context.topics_to_be_deleted
        )

    # Only partitions with a leader: a partition that never came online has no state to change.
    def is_affected(partition: TopicPartition) -> bool:
        return partition in context.leadership and may_move(partition)

    one_by_one = parts.host.profile.controlled_shutdowns != "together"
    hosted = context.partitions_on_broker(broker)
    if one_by_one:
        # What it led and what it followed in turn: a StopReplica may overtake the LeaderAndIsr of a
        # partition whose leader is still to move.
        groups = [[p] for p in _in_set_order(parts, hosted) if is_affected(p)]
    else:
        groups = [[p for p in hosted if is_affected(p)]]
    follows_any = any(not leads(p) for group in groups for p in group)
    for group in groups:
        # Leaders first: each election removes this broker from that ISR in the same write.
        leading, followed = [p for p in group if leads(p)], [p for p in group if not leads(p)]
        if leading:
            await parts.partitions.handle_state_changes(
                leading, PartitionState.ONLINE, parts.partitions.controlled_shutdown_strategy
            )
            # The first use of the code for replicas, which a broker that only leads does not need.
            if follows_any:
                await parts.host.kernel.checkpoint("leaders_moved")
        await _leave(parts, broker, followed)
    await parts.host.kernel.checkpoint("broker_may_go")
    return tuple(p for p in context.leadership if leads(p) and may_move(p))


async def _leave(parts: ControllerParts, broker: int, followed: Sequence[TopicPartition]) -> None:
    """Stop the broker's replicas that do not lead, and take them out of the ISR."""

    def stop(batch: ControllerBrokerRequestBatch) -> None:
        for partition in followed:
            batch.add_stop_replica([broker], partition, delete=False)

    await parts.send(stop)
    # Only this step raises the leader epoch, and only where the replica is in the ISR. From 2.6 on
    # the broker ignores the StopReplica because its epoch is not greater. Its fetching ends when
    # its next fetch is fenced (spec §6.11).
    leaving = [PartitionAndReplica(p, broker) for p in followed]
    await parts.replicas.handle_state_changes(leaving, ReplicaState.OFFLINE)


def _in_set_order(
    parts: ControllerParts, hosted: Sequence[TopicPartition]
) -> Sequence[TopicPartition]:
    """The partitions in the order of an immutable Set of (partition, number of replicas), which was
    read from a mutable Map (ControllerContext.scala@1.0.2 partitionsOnBroker)."""
    context, library = parts.context, LIBRARIES[parts.host.profile.scala]

    def in_set(partition: TopicPartition) -> int:
        replicas = len(context.replicas(partition))
        return product_hash((topic_and_partition_hash(*partition), replicas))

    known = [p for p in context.order.assigned(context.assignments) if p in hosted]
    if parts.host.profile.controlled_shutdowns == "isr-first":
        # Up to 0.9 the Map was filtered into another Map, which reverses partitions of one bucket.
        known = context.order.of_map(known)
    return immutable_set(known, library, in_set)[0]
