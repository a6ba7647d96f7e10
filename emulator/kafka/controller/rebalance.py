"""Which partitions the automatic rebalance moves back to their preferred leaders. Plain function.

Source: controller/KafkaController.scala@2.6.3 checkAndTriggerAutoLeaderRebalance; spec §6.12.
"""

from __future__ import annotations

from emulator.kafka.controller.context import ControllerContext
from emulator.trace.values import TopicPartition


def partitions_to_rebalance(
    context: ControllerContext, imbalance_percentage: int, *, only_electable: bool = True
) -> list[list[TopicPartition]]:
    """One list of partitions for each preferred broker, in the order of groupBy. It is empty unless
    the share of partitions that the broker should lead but does not exceeds the limit. It has the
    partitions whose preferred replica is live and in the ISR, and none while a reassignment runs.
    Topics under deletion do not count.
    """
    by_preferred: dict[int, list[TopicPartition]] = {}
    order = context.order
    for partition in order.collected(order.assigned(context.assignments)):
        replicas = context.assignments[partition].replicas
        if replicas and partition.topic not in context.topics_to_be_deleted:
            by_preferred.setdefault(replicas[0], []).append(partition)
    elections: list[list[TopicPartition]] = []
    for broker in order.grouped(by_preferred):
        partitions = order.collected(by_preferred[broker])
        led_by_others = [
            p
            for p in partitions
            if p in context.leadership and context.leadership[p].leader_and_isr.leader != broker
        ]
        # The ratio counts every partition that others lead, even one that cannot move now.
        if len(led_by_others) / len(partitions) <= imbalance_percentage / 100:
            elections.append([])
            continue
        elections.append(
            [
                p
                for p in led_by_others
                if not context.being_reassigned
                and p.topic in context.all_topics
                and broker in context.live
                # KAFKA-9866, 2.6: not if the log directory is offline or the broker is not in the
                # ISR.
                and (
                    not only_electable
                    or (
                        context.is_replica_online(broker, p)
                        and broker in context.leadership[p].leader_and_isr.isr
                    )
                )
            ]
        )
    return elections
