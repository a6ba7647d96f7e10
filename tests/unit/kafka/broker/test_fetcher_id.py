"""Which fetcher a partition belongs to: Kafka's formula, in wrapping 32-bit arithmetic (§5.1). And
in which order a broker starts its fetchers."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.fetch_state import fetcher_hash, fetcher_id
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.messages import LiveBroker
from emulator.trace.values import TopicPartition
from zk.scala.java_hash import java_hash
from zk.scala.library import LIBRARIES

TOPICS = st.text(st.sampled_from("abcxyzABC019._-"), min_size=1, max_size=40)


def int32(number: int) -> int:
    return ctypes.c_int32(number).value


def java(topic: str, partition: int, fetchers: int) -> int:
    """Utils.abs(31 * topic.hashCode() + partition) % numFetchers, step by step as the JVM does."""
    h = 0
    for letter in topic:
        h = int32(31 * h + ord(letter))
    h = int32(int32(31 * h) + partition)
    return (0 if h == -(2**31) else abs(h)) % fetchers


@settings(derandomize=True, deadline=None)
@given(TOPICS, st.integers(0, 10_000), st.integers(1, 20))
def test_it_is_kafkas_formula(topic: str, partition: int, fetchers: int) -> None:
    expected = java(topic, partition, fetchers)
    assert fetcher_id(TopicPartition(topic, partition), fetchers) == expected


def test_some_values_by_hand() -> None:
    assert [fetcher_id(TopicPartition("a", n), 1000) for n in (0, 5)] == [7, 12]


def test_the_smallest_integer_has_the_absolute_value_0() -> None:
    """This topic's hash is -2^31, and stays it times 31; Utils.abs, unlike Math.abs, makes 0 of
    it."""
    topic = "polygenelubricants"
    assert java_hash(topic) == 2**31, "as an unsigned number"
    assert fetcher_id(TopicPartition(topic, 0), 7) == 0
    assert fetcher_id(TopicPartition(topic, 1), 7) == (2**31 - 1) % 7


def test_neighbouring_partitions_go_to_neighbouring_fetchers() -> None:
    ids = [fetcher_id(TopicPartition("a", n), 4) for n in range(8)]
    assert ids == [3, 0, 1, 2, 3, 0, 1, 2]


def test_one_fetcher_takes_all() -> None:
    assert {fetcher_id(TopicPartition(t, n), 1) for t in ("a", "b") for n in range(9)} == {0}


LOGGED = [
    ("0.8.2", {1: 44195, 3: 32839, 5: 37835}, [3, 5, 1]),
    ("0.8.2", {1: 44195, 2: 38709}, [2, 1]),
    ("2.1", {1: 35639, 3: 33675, 5: 36293}, [5, 3, 1]),
    ("2.1", {1: 37735, 2: 45911, 3: 43321}, [2, 3, 1]),
    ("2.4", {1: 39087, 3: 38099, 5: 42545}, [1, 3, 5]),
    ("2.4", {1: 40909, 2: 34727, 4: 35815}, [4, 2, 1]),
    ("2.6", {1: 34103, 3: 42461, 5: 34523}, [3, 1, 5]),
    ("2.6", {1: 36695, 2: 34639}, [1, 2]),
    ("2.7", {1: 36091, 3: 44107, 5: 41289}, [5, 3, 1]),
    ("2.7", {1: 36209, 2: 34495, 4: 41391}, [2, 4, 1]),
    ("2.8", {1: 38897, 2: 41289, 4: 42781}, [1, 2, 4]),
    ("3.3", {1: 39563, 2: 33679, 4: 45947}, [4, 2, 1]),
]


@pytest.mark.parametrize(("profile", "ports", "logged"), LOGGED)
def test_fetchers_start_in_the_order_that_real_brokers_logged(
    profile: str, ports: dict[int, int], logged: list[int]
) -> None:
    """From the leaders' ports, as `isr record` found them."""
    version = profiles()[profile]

    def hash_of(broker: int) -> int:
        return fetcher_hash(LiveBroker(broker, "127.0.0.1", ports[broker]), 0, version)

    assert LIBRARIES[version.scala].grouped_order(ports, hash_of) == logged
