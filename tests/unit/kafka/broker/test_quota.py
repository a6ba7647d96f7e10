"""Replication quotas: sampled rates, who is throttled, and the configuration's text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.quota import (
    UNLIMITED,
    ReplicationQuotaManager,
    SimpleRate,
    throttled_partitions,
)
from emulator.trace.values import TopicPartition

NOW = 1_000_000_000
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

properties = settings(derandomize=True, deadline=None)


def test_a_rate_is_over_one_window_at_least() -> None:
    rate = SimpleRate(11, 1000)
    rate.record(1000, NOW)
    assert rate.measure(NOW) == rate.measure(NOW + 1000) == 1000.0
    assert rate.measure(NOW + 4000) == 250.0


def test_what_is_older_than_all_windows_counts_no_more() -> None:
    rate = SimpleRate(11, 1000)
    rate.record(1000, NOW)
    assert rate.measure(NOW + 10_999) > 0
    assert rate.measure(NOW + 11_000) == 0.0


def test_within_a_window_sizes_add_up_and_the_next_window_begins_after_its_time() -> None:
    rate = SimpleRate(3, 1000)
    rate.record(10, NOW)
    rate.record(20, NOW + 999)
    rate.record(30, NOW + 1000)
    assert rate.measure(NOW + 1500) == 60 / 1.5
    assert rate.measure(NOW + 3000) == 30 / 2, "the first window begins again"


def test_a_fourth_window_of_three_replaces_the_first() -> None:
    rate = SimpleRate(3, 1000)
    for second in range(4):
        rate.record(1 << second, NOW + second * 1000)
    assert rate.measure(NOW + 3000) == (2 + 4 + 8) / 2


def test_nothing_recorded_is_no_rate() -> None:
    assert SimpleRate(11, 1000).measure(NOW) == 0.0


def test_should_exceed_quota_then_return_back_below_bound_as_time_passes() -> None:
    """ReplicationQuotaManagerTest@2.6.3, step by step; the first look begins the first window."""
    manager = ReplicationQuotaManager(10, 1000)
    manager.bytes_per_s = 100
    assert not manager.is_quota_exceeded(NOW)
    for size, exceeded in ((1, False), (149, False), (1, True)):
        manager.record(size, NOW + 1500)
        assert manager.is_quota_exceeded(NOW + 1500) is exceeded
    assert manager.rate(NOW + 1500) == 151 / 1.5
    assert not manager.is_quota_exceeded(NOW + 2000)
    assert manager.rate(NOW + 2000) == 151 / 2
    manager.record(99, NOW + 2500)
    assert not manager.is_quota_exceeded(NOW + 2500)
    manager.record(1, NOW + 2500)
    assert manager.is_quota_exceeded(NOW + 2500)
    assert manager.rate(NOW + 2500) == 251 / 2.5
    assert not manager.is_quota_exceeded(NOW + 4500)
    assert manager.rate(NOW + 4500) == 251 / 4.5


def test_what_is_throttled_takes_its_size_over_the_quota() -> None:
    """2.18 MB at 100 kB/s, in fetches of 10 kB: 21.8 s, less the one fetch that goes over."""
    manager, now, left = ReplicationQuotaManager(11, 1000), NOW, 218
    manager.bytes_per_s = 100_000
    while left:
        if not manager.is_quota_exceeded(now):
            manager.record(10_000, now)
            left -= 1
        now += 10
    assert 21_000 <= now - NOW <= 21_800


@properties
@given(st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 1000)), min_size=1, max_size=30))
def test_a_rate_is_never_above_what_the_last_windows_moved_in_one_of_them(
    moves: list[tuple[int, int]],
) -> None:
    rate, now, sizes = SimpleRate(5, 1000), NOW, list[tuple[int, int]]()
    for pause, size in moves:
        now += pause
        sizes.append((now, size))
        rate.record(size, now)
        # A window counts until the time of five has passed since it began.
        counted = sum(size for at, size in sizes if now - at < 5000)
        assert 0 <= rate.measure(now) <= counted


def quota(bytes_per_s: int, moved: int) -> ReplicationQuotaManager:
    manager = ReplicationQuotaManager(11, 1000)
    manager.bytes_per_s = bytes_per_s
    manager.record(moved, NOW)
    return manager


@pytest.mark.parametrize(("moved", "exceeded"), [(99, False), (100, False), (101, True)])
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
