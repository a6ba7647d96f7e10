"""Record batches: written and read again, clients' too, and looked into by time."""

from __future__ import annotations

import gzip
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from emulator.kafka.model.record_batch import (
    GZIP,
    HEADER,
    UNPACKED_BYTES,
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


def _of_records(body: bytes, attributes: int = 0) -> bytes:
    """A batch with these bytes as its records, unvalidated."""
    fields = list(HEADER.unpack_from(batch_of([(None, b"")], 1000)))
    fields[5] = attributes
    return HEADER.pack(*fields) + body


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x01", "a record of -1 bytes"),  # was read for ever: it ends before it begins
        (b"\x7f" + bytes(9), "a record of -64 bytes"),
        (b"\x02", "a record of 1 bytes"),
        (b"\xff" * 20, "a number at byte"),
        (b"\x0c\0\0\0\x7e\0\0", "63 bytes at byte 5 of 7"),
    ],
)
def test_records_that_cannot_be_are_refused_and_looked_up_as_one(body: bytes, why: str) -> None:
    batch = _of_records(body)
    with pytest.raises(UnreadableBatch, match=why):
        list(records_of(batch, 70))
    record = first_not_before(batch, 70, 1000)
    assert record is not None
    assert record.offset == 70


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"no gzip", "incorrect header"),
        (gzip.compress(b"x" * 100)[:-9], "cut off"),
        (gzip.compress(bytes(UNPACKED_BYTES + 1)), "more than 16,777,216 bytes"),
    ],
    ids=["no gzip", "cut off", "too much"],  # gzip's header has the time
)
def test_a_compressed_batch_unpacks_to_no_more_than_it_may(body: bytes, why: str) -> None:
    with pytest.raises(UnreadableBatch, match=why):
        list(records_of(_of_records(body, attributes=GZIP), 70))


@pytest.mark.parametrize(
    "records", [bytes(64 << 20), b"\x0c\0\0\0\1\1\0" * 2_000_000], ids=["zeros", "small records"]
)
def test_a_small_batch_that_unpacks_to_megabytes_is_looked_up_in_a_moment(records: bytes) -> None:
    """Its header claims a later time than any of its records has: all would be read."""
    fields = list(HEADER.unpack_from(_of_records(gzip.compress(records), GZIP)))
    fields[8] = 2000
    batch = HEADER.pack(*fields) + gzip.compress(records)
    assert len(batch) < 100_000
    began = time.thread_time()
    record = first_not_before(batch, 70, 1500)
    assert time.thread_time() - began < 1  # 20 to 60 ms; all records take 8 s
    assert record is not None
    assert (record.offset, record.timestamp_ms) == (70, 1000)
