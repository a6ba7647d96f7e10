"""When leadership drifts from the preferred replicas: the test behind the automatic rebalance.
Plain function.

Source: controller/KafkaController.scala@2.6.3 checkAndTriggerAutoLeaderRebalance; spec §6.12.
"""

from __future__ import annotations

from emulator.kafka.controller.context import ControllerContext
from emulator.trace.values import TopicPartition


def partitions_to_rebalance(
    context: ControllerContext, imbalance_percentage: int, *, only_electable: bool = True
) -> list[list[TopicPartition]]:
    """Per preferred broker: when the share of partitions that it should lead but does not is above
    the limit, those whose preferred replica is live and in the ISR. One election for each broker;
    none while a reassignment runs. Topics under deletion do not count."""
    by_preferred: dict[int, list[TopicPartition]] = {}
    for partition, assignment in context.assignments.items():
        if assignment.replicas and partition.topic not in context.topics_to_be_deleted:
            by_preferred.setdefault(assignment.replicas[0], []).append(partition)
    return [
        _candidates(
            context, broker, partitions, imbalance_percentage, only_electable=only_electable
        )
        for broker, partitions in by_preferred.items()
    ]


def _candidates(
    context: ControllerContext,
    broker: int,
    partitions: list[TopicPartition],
    imbalance_percentage: int,
    *,
    only_electable: bool,
) -> list[TopicPartition]:
    """What moves to `broker`; before 2.6 whether it can lead or not, if it lives."""
    led_by_others = [
        p
        for p in partitions
        if p in context.leadership and context.leadership[p].leader_and_isr.leader != broker
    ]
    if len(led_by_others) / len(partitions) <= imbalance_percentage / 100:
        return []
    return [
        p
        for p in led_by_others
        if not context.being_reassigned
        and p.topic in context.all_topics
        and broker in context.live
        and (not only_electable or _can_lead(context, broker, p))
    ]


def _can_lead(context: ControllerContext, broker: int, partition: TopicPartition) -> bool:
    """It is live, its log directory too, and it is in the ISR (KAFKA-9866)."""
    online = context.is_replica_online(broker, partition)
    return online and broker in context.leadership[partition].leader_and_isr.isr
