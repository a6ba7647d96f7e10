"""Kafka's hash tables decide which partition takes its role, and is fetched, first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from emulator.kafka.broker.fetch_state import (
    InitialFetchState,
    PartitionFetchState,
    PartitionStates,
)
from emulator.kafka.broker.role_order import as_added, by_partition, pair_hash
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import signed

LEADER = LiveBroker(1, "127.0.0.1", 34567)
AUDIT, CLICKS, FIRST, SECOND = (
    TopicPartition("audit", 0),
    TopicPartition("clicks", 1),
    TopicPartition("orders", 0),
    TopicPartition("orders", 1),
)


def not_drawn(_: int) -> int:
    pytest.fail("nothing is drawn here")


def fetch_state(offset: int) -> PartitionFetchState:
    return PartitionFetchState(offset, None, 0, 0, truncating=False)


@pytest.mark.parametrize(
    ("version", "followers"),
    [
        ("0.8.2", [CLICKS, SECOND, AUDIT, FIRST]),
        ("2.1", [CLICKS, SECOND, AUDIT, FIRST]),
        ("2.4", [AUDIT, CLICKS, SECOND, FIRST]),
        ("3.3", [AUDIT, CLICKS, SECOND, FIRST]),
    ],
)
def test_replicas_of_a_restarted_broker_follow_in_the_recorded_order(
    version: str, followers: list[TopicPartition]
) -> None:
    """Broker 2 of five-brokers-crashes, whatever the order of the request."""
    for request in ([AUDIT, CLICKS, FIRST, SECOND], [SECOND, FIRST, CLICKS, AUDIT]):
        roles = [(cast("Any", SimpleNamespace(partition=p)), cast("Any", None)) for p in request]
        ordered = by_partition(roles, profiles()[version])
        assert [hosted.partition for hosted, _ in ordered] == followers


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.9.0", -1496173663),
        ("0.10.2", -699531329),
        ("1.1", -699531329),
        ("2.1", -2054677144),
        ("2.4", 1116544538),
        ("2.8", 1116544538),
    ],
)
def test_a_pair_for_the_fetcher_manager_hashes_as_that_release_s_own_classes(
    version: str, expected: int
) -> None:
    """Values of `new Tuple2(partition, state).hashCode()` with the jars of each release."""
    state = InitialFetchState(LEADER, 3, 57)
    assert signed(pair_hash(TopicPartition("orders", 2), state, profiles()[version])) == expected


def test_which_of_two_partitions_of_a_leader_is_fetched_first_depends_on_its_port() -> None:
    def added(port: int, version: str) -> list[TopicPartition]:
        states = {p: InitialFetchState(LEADER._replace(port=port), 0, 60) for p in (FIRST, AUDIT)}
        return list(as_added(states, profiles()[version], not_drawn))

    for version in ("0.9.0", "2.1", "2.8"):
        orders = {tuple(added(port, version)) for port in range(30_000, 30_040)}
        assert orders == {(FIRST, AUDIT), (AUDIT, FIRST)}, version
    # A Set of up to four keeps its order: up to 0.8.2 it is an immutable one.
    assert added(30_000, "0.8.2") == added(30_001, "0.8.2") == [FIRST, AUDIT]


def test_from_3_1_on_that_order_depends_on_the_topics_random_ids() -> None:
    states = {p: InitialFetchState(LEADER, 0, 60) for p in (FIRST, AUDIT)}
    orders = set()
    for ids in ((1, 2), (2, 1)):
        drawn = iter(ids)
        added = as_added(states, profiles()["3.3"], lambda below, drawn=drawn: next(drawn))
        orders.add(tuple(added))
    assert orders == {(FIRST, AUDIT), (AUDIT, FIRST)}


@pytest.mark.parametrize(
    ("version", "requested"),
    [
        # As groupBy leaves the topics; in each the order of the thread.
        ("0.8.2", [CLICKS, SECOND, FIRST, AUDIT]),
        # Java's HashMaps, of topics and of partitions.
        ("0.9.0", [AUDIT, CLICKS, FIRST, SECOND]),
    ],
)
def test_up_to_0_9_a_request_groups_a_fetcher_s_partitions_by_topic(
    version: str, requested: list[TopicPartition]
) -> None:
    """Recorded with 0.9.0.1: audit-0 before clicks-0 and orders-0, orders-0 before orders-1, in
    eight of ten pairs of expansions by one leader; six come in the thread's own order."""
    states = PartitionStates(profiles()[version])
    for partition in (SECOND, CLICKS, FIRST, AUDIT):
        states.update_and_move_to_end(partition, fetch_state(0))
    states.added()
    assert list(states) == [SECOND, AUDIT, CLICKS, FIRST]
    assert list(states.request_order(states)) == requested


def test_above_four_partitions_the_leader_reads_them_in_the_order_of_a_trie() -> None:
    five = [TopicPartition("orders", number) for number in range(5)]
    states = PartitionStates(profiles()["0.9.0"])
    assert list(states.request_order(five[:4])) == five[:4]
    assert sorted(states.request_order(five)) == five
    assert list(states.request_order(five)) != five


def test_up_to_0_9_a_hash_map_orders_a_fetcher_s_partitions() -> None:
    orders = set()
    for added in ([AUDIT, FIRST, SECOND], [SECOND, FIRST, AUDIT]):
        states = PartitionStates(profiles()["0.9.0"])
        for partition in added:
            states.update_and_move_to_end(partition, fetch_state(0))
            states.added()
        for partition in added:
            states.update_and_move_to_end(partition, fetch_state(1))
            states.rebuild()
            orders.add(tuple(states))
    assert len(orders) == 1


@pytest.mark.parametrize(
    ("version", "added", "truncated"),
    [
        ("1.1", [FIRST, SECOND, CLICKS, AUDIT], [FIRST, SECOND, CLICKS, AUDIT]),
        ("2.4", [FIRST, CLICKS, SECOND, AUDIT], [FIRST, SECOND, CLICKS, AUDIT]),
        ("2.6", [FIRST, CLICKS, SECOND, AUDIT], [AUDIT, CLICKS, FIRST, SECOND]),
    ],
)
def test_partitions_come_in_the_order_in_which_they_were_added_until_a_truncation(
    version: str, added: list[TopicPartition], truncated: list[TopicPartition]
) -> None:
    """PartitionStates.set puts a topic's partitions together; since 2.6 a HashMap orders them."""
    states = PartitionStates(profiles()[version])
    for partition in (FIRST, CLICKS, SECOND, AUDIT):
        states.update_and_move_to_end(partition, fetch_state(0))
    states.added()
    assert list(states) == added
    states.rebuild()
    assert list(states) == truncated
