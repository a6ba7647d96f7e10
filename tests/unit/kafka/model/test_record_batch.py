"""Record batches: written and read again, clients' too, and looked into by time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from emulator.kafka.model.record_batch import (
    UnreadableBatch,
    batch_of,
    first_not_before,
    records_of,
)

properties = settings(derandomize=True, deadline=None)


@properties
@given(st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary()), min_size=1))
def test_records_of_a_batch_are_read_again(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    read = list(records_of(batch_of(records, 1234), 70))
    assert [(r.key, r.value) for r in read] == records
    assert [r.offset for r in read] == list(range(70, 70 + len(records)))
    assert {r.timestamp_ms for r in read} == {1234}


def of_a_client(compression: int) -> bytes:
    """Four records of the times 1000 to 1003."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=10_000)
    for n in range(4):
        builder.append(timestamp=1000 + n, key=b"k", value=b"v%d" % n)
    builder.close()
    return bytes(builder.buffer())


@pytest.mark.parametrize("compression", [0, 1])
def test_a_client_s_batch_is_read(compression: int) -> None:
    read = list(records_of(of_a_client(compression), 70))
    assert [(r.offset, r.timestamp_ms, r.value) for r in read] == [
        (70 + n, 1000 + n, b"v%d" % n) for n in range(4)
    ]


def test_another_compression_is_named() -> None:
    batch = bytearray(batch_of([(None, b"")], 0))
    batch[22] = 4
    with pytest.raises(UnreadableBatch, match="compression 4"):
        list(records_of(bytes(batch), 0))


@pytest.mark.parametrize("compression", [0, 1])
@pytest.mark.parametrize(
    ("time_ms", "found"),
    [(0, (70, 1000)), (1000, (70, 1000)), (1002, (72, 1002)), (1003, (73, 1003)), (1004, None)],
)
def test_the_first_record_of_a_time_or_later(
    compression: int, time_ms: int, found: tuple[int, int] | None
) -> None:
    record = first_not_before(of_a_client(compression), 70, time_ms)
    assert (record and (record.offset, record.timestamp_ms)) == found


def test_of_a_batch_that_cannot_be_read_the_first_record_stands_for_all() -> None:
    batch = bytearray(of_a_client(0))
    batch[22] = 4
    record = first_not_before(bytes(batch), 70, 1002)
    assert record is not None
    assert (record.offset, record.timestamp_ms) == (70, 1000)
