"""Automatic assignment: what holds whatever the numbers are, and Kafka's own example."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.broker.assignment import (
    assign_replicas_to_brokers,
    check_added_partitions,
    check_new_topic,
)
from emulator.kafka.model.errors import Errors, KafkaError


def test_the_example_of_admin_utils() -> None:
    """AdminUtils.scala@2.6.3: ten partitions, three replicas, five brokers, from 0 and shift 0."""
    assigned = assign_replicas_to_brokers([0, 1, 2, 3, 4], 10, 3, 0, 0)
    assert assigned == (
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    )


@given(st.data())
def test_every_partition_has_distinct_replicas_and_leaders_are_spread_evenly(
    data: st.DataObject,
) -> None:
    brokers = data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True))
    factor = data.draw(st.integers(1, len(brokers)))
    partitions = data.draw(st.integers(1, 40))
    start, shift = (data.draw(st.integers(0, len(brokers) - 1)) for _ in range(2))
    assigned = assign_replicas_to_brokers(brokers, partitions, factor, start, shift)
    assert len(assigned) == partitions
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in assigned)
    leads = Counter(dict.fromkeys(brokers, 0)) | Counter(replicas[0] for replicas in assigned)
    assert max(leads.values()) - min(leads[b] for b in brokers) <= 1


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 20), st.integers(1, 20))
def test_added_partitions_go_on_where_the_first_ones_stopped(
    brokers: int, factor: int, before: int, more: int
) -> None:
    ids, factor = list(range(brokers)), min(factor, brokers)
    at_once = assign_replicas_to_brokers(ids, before + more, factor, 0, 0)
    first = assign_replicas_to_brokers(ids, before, factor, 0, 0)
    added = assign_replicas_to_brokers(ids, more, factor, 0, 0, before)
    assert [r[0] for r in first + added] == [r[0] for r in at_once]


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, Errors.INVALID_PARTITIONS),
        (1, 0, Errors.INVALID_REPLICATION_FACTOR),
        (1, 3, Errors.INVALID_REPLICATION_FACTOR),
    ],
)
def test_counts_that_cannot_be(partitions: int, factor: int, error: Errors) -> None:
    with pytest.raises(KafkaError) as caught:
        assign_replicas_to_brokers([1, 2], partitions, factor, 0, 0)
    assert caught.value.error is error


def test_a_new_topic_may_name_brokers_that_nobody_knows_and_added_partitions_may_not() -> None:
    check_new_topic(((7, 8),))
    with pytest.raises(KafkaError):
        check_added_partitions(((7, 8),), 2, [1, 2])
    check_added_partitions(((1, 2),), 2, [1, 2])
