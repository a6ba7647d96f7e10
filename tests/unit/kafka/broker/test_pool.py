"""The order of hosted partitions: that of Java's table, as real shrink passes went through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.conformance.recording import Recording, read_recording
from emulator.kafka.broker.pool import Pool
from emulator.trace.values import TopicPartition

RECORDINGS = Path(__file__).parents[3] / "recordings"
SAME_PASS_MS = 400


def partitions(text: str) -> list[TopicPartition]:
    named = (word.rsplit("-", 1) for word in text.split())
    return [TopicPartition(topic, int(number)) for topic, number in named]


def hosting(those: list[TopicPartition]) -> Pool[TopicPartition]:
    pool: Pool[TopicPartition] = Pool()
    for partition in those:
        pool[partition] = partition
    return pool


def passes(real: Recording) -> Iterator[list[TopicPartition]]:
    """Shrinks of one broker in a row, as far as they can be of one pass."""
    last: dict[int, tuple[int, list[TopicPartition]]] = {}
    for fact in real.of("shrink"):
        partition = TopicPartition(fact["topic"], fact["partition"])
        at, together = last.get(fact["broker"], (-SAME_PASS_MS, []))
        if fact["t"] - at > SAME_PASS_MS or partition in together:
            together = []
            yield together
        together.append(partition)
        last[fact["broker"]] = (fact["t"], together)


@pytest.mark.parametrize("folder", sorted((RECORDINGS / "kafka-2.6.3").iterdir()))
def test_recorded_passes_went_in_the_order_of_the_table(folder: Path) -> None:
    real = read_recording(folder)
    for together in [each for each in list(passes(real)) if len(each) > 1]:
        order = list(hosting(sorted(together)).in_order())
        buckets = {p: n for n, p in enumerate(order)}
        assert [buckets[p] for p in together] == sorted(buckets[p] for p in together)


def test_six_hundred_partitions_stand_in_1024_buckets() -> None:
    """Like the 600 partitions in shrink-storm's passes."""
    order = list(hosting([TopicPartition("orders", n) for n in range(600)]).in_order())
    assert [p.partition for p in order[:12]] == [
        *(10, 43, 76, 109, 142, 175, 208, 241, 274, 307, 340, 373)
    ]


def test_what_has_gone_is_passed_over_and_comes_back_where_it_was() -> None:
    pool = hosting(partitions("orders-0 orders-1 orders-2"))
    before = list(pool.in_order())
    assert pool.remove(TopicPartition("orders", 1)) is not None
    assert pool.remove(TopicPartition("orders", 1)) is None
    assert set(pool.in_order()) == {*partitions("orders-0 orders-2")}
    pool[TopicPartition("orders", 1)] = TopicPartition("orders", 1)
    assert list(pool.in_order()) == before


def test_those_of_one_bucket_are_in_the_order_of_their_coming() -> None:
    """random-8 at 21.8 s: orders-0, clicks-1, orders-1."""
    recorded = partitions("orders-0 clicks-1 orders-1")
    assert list(hosting(recorded).in_order()) == recorded
    assert list(hosting(recorded[::-1]).in_order()) == partitions("clicks-1 orders-0 orders-1")


@given(st.lists(st.integers(0, 5000), unique=True, max_size=60), st.randoms())
def test_the_order_does_not_depend_on_that_of_creation_but_within_a_bucket(
    numbers: list[int],
    chance: st.Random,  # type: ignore[name-defined]
) -> None:
    """One topic's partitions fall into different buckets, unless they are a table apart."""
    numbers = [n for n in numbers if n < 16]
    those = [TopicPartition("orders", n) for n in numbers]
    shuffled = those[:]
    chance.shuffle(shuffled)
    assert list(hosting(those).in_order()) == list(hosting(shuffled).in_order())
