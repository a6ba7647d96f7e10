"""Replication quotas: sampled rates, who is throttled, and the configuration's text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.quota import (
    UNLIMITED,
    ReplicationQuotaManager,
    SampledRate,
    throttled_partitions,
)
from emulator.trace.values import TopicPartition

NOW = 1_000_000_000
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

properties = settings(derandomize=True, deadline=None)


def test_a_rate_takes_all_windows_but_one_as_elapsed_even_when_they_are_not() -> None:
    """Rate.measure: a burst just now is spread over ten of the eleven seconds."""
    rate = SampledRate(11, 1000)
    rate.record(1000, NOW)
    assert rate.measure(NOW) == 100.0
    assert rate.measure(NOW + 999) == 1000 * 1000 / 10_999


def test_what_is_older_than_all_windows_counts_no_more() -> None:
    rate = SampledRate(11, 1000)
    rate.record(1000, NOW)
    assert rate.measure(NOW + 10_999) > 0
    assert rate.measure(NOW + 11_000) == 0.0


def test_within_a_window_sizes_add_up_and_the_next_window_begins_after_its_time() -> None:
    rate = SampledRate(3, 1000)
    rate.record(10, NOW)
    rate.record(20, NOW + 999)
    rate.record(30, NOW + 1000)
    assert rate.measure(NOW + 1000) == 60 * 1000 / 2000
    assert rate.measure(NOW + 3000) == 30 * 1000 / 2000 * 2000 / (2000 + 1000 - 1000)


def test_nothing_recorded_is_no_rate() -> None:
    assert SampledRate(11, 1000).measure(NOW) == 0.0


@properties
@given(st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 1000)), min_size=1, max_size=30))
def test_a_rate_is_never_above_all_that_was_moved_over_the_windows_time(
    moves: list[tuple[int, int]],
) -> None:
    rate, now, total = SampledRate(5, 1000), NOW, 0
    for pause, size in moves:
        now, total = now + pause, total + size
        rate.record(size, now)
        assert 0 <= rate.measure(now) <= total * 1000 / 4000


def quota(bytes_per_s: int, moved: int) -> ReplicationQuotaManager:
    manager = ReplicationQuotaManager(11, 1000)
    manager.bytes_per_s = bytes_per_s
    manager.record(moved, NOW)
    return manager


@pytest.mark.parametrize(("moved", "exceeded"), [(999, False), (1000, False), (1001, True)])
def test_a_quota_is_exceeded_by_more_than_it_allows_and_not_by_itself(
    moved: int, exceeded: bool
) -> None:
    assert quota(100, moved).is_quota_exceeded(NOW) is exceeded


def test_without_a_quota_nothing_is_too_much() -> None:
    assert not quota(UNLIMITED, 1 << 40).is_quota_exceeded(NOW)


def test_a_topic_is_throttled_as_a_whole_or_by_partition() -> None:
    manager = ReplicationQuotaManager(11, 1000)
    assert not manager.is_throttled(ORDERS_0)
    manager.mark_throttled("orders", frozenset({1}))
    assert (manager.is_throttled(ORDERS_0), manager.is_throttled(ORDERS_1)) == (False, True)
    assert not manager.is_throttled(TopicPartition("other", 1))
    manager.mark_throttled("orders", "*")
    assert manager.is_throttled(ORDERS_0)
    manager.remove_throttle("orders")
    assert not manager.is_throttled(ORDERS_0)


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("*", "*"),
        (" * ", "*"),
        ("none", frozenset()),
        ("", frozenset()),
        ("0:1,1:2,2:1", frozenset({0, 2})),
        ("0:2", frozenset()),
        ("0:1, 5:1", frozenset({0, 5})),
    ],
)
def test_the_configuration_names_partitions_by_broker(
    text: str, partitions: frozenset[int] | str
) -> None:
    assert throttled_partitions(text, 1) == partitions


def test_a_configuration_that_is_no_list_of_pairs_is_an_error_of_value() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        throttled_partitions("a:b", 1)
