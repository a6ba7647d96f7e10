"""When leadership goes back to the preferred replicas by itself (spec §6.12)."""

from __future__ import annotations

import pytest

from emulator.kafka.controller.cache_order import CacheOrder
from emulator.kafka.controller.context import ControllerContext
from emulator.kafka.controller.rebalance import partitions_to_rebalance
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment


def cluster(
    *leaders: int, isr: tuple[int, ...] = (1, 2), live: tuple[int, ...] = (1, 2)
) -> ControllerContext:
    """Partitions that broker 1 should lead; they are led by these."""
    context = ControllerContext(CacheOrder(profiles()["2.6"]))
    context.live_brokers = {b: (LiveBroker(b, f"host-{b}", 9092), 1) for b in live}
    for number, leader in enumerate(leaders):
        partition = TopicPartition("t", number)
        context.all_topics["t"] = None
        context.assignments[partition] = ReplicaAssignment((1, 2))
        state = LeaderAndIsr(leader, 4, isr, 5)
        context.leadership[partition] = LeaderIsrAndControllerEpoch(state, 7)
    return context


def numbers(context: ControllerContext, percentage: int = 10) -> list[int]:
    groups = partitions_to_rebalance(context, percentage)
    return [p.partition for group in groups for p in group]


@pytest.mark.parametrize(
    ("led_by_others", "of", "moves"), [(0, 10, False), (1, 10, False), (2, 10, True)]
)
def test_more_than_the_percentage_moves_and_the_percentage_itself_does_not(
    led_by_others: int, of: int, moves: bool
) -> None:
    context = cluster(*[2] * led_by_others, *[1] * (of - led_by_others))
    assert bool(numbers(context)) is moves


def test_those_move_that_are_led_by_others() -> None:
    assert numbers(cluster(1, 2, 1, 2)) == [1, 3]


def test_a_preferred_replica_that_is_gone_or_out_of_sync_is_left_alone() -> None:
    assert numbers(cluster(2, 2, live=(2,))) == []
    assert numbers(cluster(2, 2, isr=(2,))) == []


def test_one_that_is_shutting_down_is_left_alone() -> None:
    context = cluster(2, 2)
    context.shutting_down[1] = None
    assert numbers(context) == []


def test_every_preferred_broker_is_judged_by_itself() -> None:
    context = cluster(*[1] * 20, 2)
    other = TopicPartition("u", 0)
    context.all_topics["u"] = None
    context.assignments[other] = ReplicaAssignment((2, 1))
    context.leadership[other] = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 4, (1, 2), 5), 7)
    assert partitions_to_rebalance(context, 10) == [[], [other]]


def test_topics_under_deletion_count_for_nothing() -> None:
    context = cluster(*[2] * 1, *[1] * 9)
    going = TopicPartition("going", 0)
    context.assignments[going] = ReplicaAssignment((1, 2))
    context.leadership[going] = LeaderIsrAndControllerEpoch(LeaderAndIsr(2, 4, (1, 2), 5), 7)
    context.topics_to_be_deleted["going"] = None
    assert numbers(context) == []


def test_nothing_moves_while_a_reassignment_runs() -> None:
    context = cluster(2, 2)
    context.being_reassigned[TopicPartition("t", 0)] = None
    assert numbers(context) == []


def test_one_on_a_log_directory_that_failed_is_left_alone() -> None:
    context = cluster(2, 2)
    context.replicas_on_offline_dirs[1] = {TopicPartition("t", 0): None}
    assert numbers(context) == [1]


def test_a_partition_without_a_known_leader_does_not_count_as_led_by_others() -> None:
    context = cluster(1, 2)
    del context.leadership[TopicPartition("t", 1)]
    assert numbers(context) == []


def test_brokers_take_their_turns_in_the_order_of_group_by() -> None:
    """Recorded (2.6.3, random script 141): t1-3, whose preferred leader is broker 1, before t1-4,
    which was reassigned to broker 2, and comes first in the map of t1's partitions."""
    context = ControllerContext(CacheOrder(profiles()["2.6"]))
    context.live_brokers = {b: (LiveBroker(b, f"host-{b}", 9092), 1) for b in (1, 2, 3)}
    replicas = {
        "t0": [(2, 1), (3, 1), (2, 1), (1, 3)],
        "t1": [(2, 1, 3), (3, 2, 1), (2, 3, 1), (1, 2, 3), (2, 1, 3)],
    }
    led_by = {("t1", 3): 2, ("t1", 4): 1}
    for topic, assignments in replicas.items():
        context.all_topics[topic] = None
        for number, assignment in enumerate(assignments):
            partition = TopicPartition(topic, number)
            context.assignments[partition] = ReplicaAssignment(assignment)
            leader = led_by.get(partition, assignment[0])
            state = LeaderAndIsr(leader, 4, assignment, 5)
            context.leadership[partition] = LeaderIsrAndControllerEpoch(state, 7)
    elections = [group for group in partitions_to_rebalance(context, 10) if group]
    assert elections == [[TopicPartition("t1", 3)], [TopicPartition("t1", 4)]]
