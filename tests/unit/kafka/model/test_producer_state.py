"""Idempotent producers: what a log knows of them, and what it accepts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.offset_log import Batch, OffsetLog
from emulator.kafka.model.producer_state import (
    MAX_SEQUENCE,
    BatchMetadata,
    BatchProducer,
    ProducerStateManager,
)

Sent = tuple[int, int, int, int]
"""Producer id, epoch, sequence number, records."""


def appended(*batches: Sent) -> OffsetLog:
    log = OffsetLog()
    for producer_id, epoch, sequence, records in batches:
        producer = BatchProducer(producer_id, epoch, sequence)
        log.append_as_leader(records, 100, 0, b"", producer)
    return log


def error_of(log: OffsetLog, producer: BatchProducer, *, accepts_unknown: bool = True) -> str:
    try:
        log.producers.check(producer, accepts_unknown=accepts_unknown)
    except KafkaError as failed:
        return failed.error.name
    return ""


def knowledge(producers: ProducerStateManager) -> object:
    return {i: (e.producer_epoch, list(e.batches)) for i, e in producers.entries.items()}


def test_the_next_sequence_number_follows_the_last_record() -> None:
    log = appended((7, 0, 0, 3), (8, 0, 0, 1), (7, 0, 3, 2))
    assert error_of(log, BatchProducer(7, 0, 5)) == ""
    assert error_of(log, BatchProducer(7, 0, 6)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert error_of(log, BatchProducer(7, 0, 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert error_of(log, BatchProducer(8, 0, 1)) == ""


def test_after_the_greatest_sequence_number_comes_zero() -> None:
    log = appended((7, 0, MAX_SEQUENCE - 1, 2))
    assert error_of(log, BatchProducer(7, 0, 0)) == ""
    assert BatchProducer(7, 0, MAX_SEQUENCE).last_sequence(2) == 0


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    log = appended((7, 3, 0, 1))
    assert error_of(log, BatchProducer(7, 2, 1)) == "INVALID_PRODUCER_EPOCH"
    assert error_of(log, BatchProducer(7, 4, 1)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert error_of(log, BatchProducer(7, 4, 0)) == ""


def test_an_unknown_producer_begins_anywhere_or_at_zero() -> None:
    log = appended()
    assert error_of(log, BatchProducer(7, 0, 5)) == ""
    assert error_of(log, BatchProducer(7, 0, 5), accepts_unknown=False) == "UNKNOWN_PRODUCER_ID"
    assert error_of(log, BatchProducer(7, 0, 0), accepts_unknown=False) == ""


def test_one_of_the_last_five_batches_is_a_duplicate_an_older_one_is_not() -> None:
    log = appended(*((7, 0, n, 1) for n in range(6)))
    duplicates = [log.producers.duplicate_of(BatchProducer(7, 0, n), 1) for n in range(6)]
    assert duplicates == [None, *(BatchMetadata(n, n, n, n + 1) for n in range(1, 6))]
    assert error_of(log, BatchProducer(7, 0, 0)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    # The same first number with another count is another batch, and so is another epoch's.
    assert log.producers.duplicate_of(BatchProducer(7, 0, 5), 2) is None
    assert log.producers.duplicate_of(BatchProducer(7, 1, 5), 1) is None


def batches_of_producers() -> st.SearchStrategy[list[Sent]]:
    one = st.tuples(
        st.sampled_from((7, 8)), st.integers(0, 2), st.integers(0, 9), st.integers(1, 3)
    )
    return st.lists(one, max_size=12)


@settings(derandomize=True, deadline=None)
@given(batches_of_producers(), st.integers(0, 20))
def test_a_follower_and_a_truncated_log_know_what_their_batches_say(
    sent: list[Sent], offset: int
) -> None:
    """Whatever was appended, by whichever way."""
    leader, follower = appended(*sent), OffsetLog()
    follower.append_as_follower(tuple(leader.batches))
    assert knowledge(follower.producers) == knowledge(leader.producers)
    follower.truncate_to(offset)
    left = OffsetLog()
    left.append_as_follower(tuple(follower.batches))
    assert knowledge(follower.producers) == knowledge(left.producers)
    follower.truncate_fully_and_start_at(offset)
    assert knowledge(follower.producers) == {}


@pytest.mark.parametrize("producer", [None, BatchProducer(7, 0, 0)])
def test_a_batch_says_who_wrote_it(producer: BatchProducer | None) -> None:
    assert OffsetLog().append_as_leader(2, 100, 4, b"", producer) == Batch(
        0, 2, 100, 4, b"", producer
    )
