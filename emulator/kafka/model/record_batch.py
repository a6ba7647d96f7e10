"""Record batches, format 2: the header, and the records of batches without compression or with
gzip.

Clients' batches are stored unchanged, and only their header is read. Brokers read and write records
of their own topic, `__consumer_offsets`. Source: DefaultRecordBatch.java, DefaultRecord.java@2.6.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta,
baseTimestamp, maxTimestamp, producerId, producerEpoch, baseSequence, records."""

MAGIC = 2
CHECKED_FROM = 21
"""The checksum covers the bytes from here on."""

BEFORE_LENGTH = 12
"""baseOffset and batchLength, which batchLength does not count."""

COMPRESSION, GZIP = 0x07, 1
"""The compression bits of the attributes, and the one codec that is supported here."""

CONTROL = 0x20


class Record(NamedTuple):
    """One record; a value of None deletes the key in a compacted topic."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


UNPACKED_BYTES = 16 << 20
"""The limit for a batch's decompressed records: a batch of 1 MB could expand to a gigabyte."""


LOOKED_AT, LOOKED_AT_BYTES = 10_000, 1 << 20
"""How many records of a client's batch are read to find a time, and how much of it is decompressed:
a frame of 25 KB can have 2.4 million records, for whose reading everybody would wait 8 s."""


class UnreadableBatch(Exception):
    """The codec is not supported, or the records are malformed: of clients' batches only the header
    was validated."""


def batch_of(records: Iterable[tuple[bytes | None, bytes | None]], now_ms: int) -> bytes:
    """A batch of keys and values; the log assigns its offset."""
    body, count = bytearray(), 0
    for count, (key, value) in enumerate(records, 1):
        # attributes, timestamp delta, offset delta; no headers at the end
        record = b"\0\0" + _varint(count - 1) + _field(key) + _field(value) + b"\0"
        body += _varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, count - 1, now_ms, now_ms, -1, -1, -1, count)
    crc = crc32c.crc32c(checked + body)
    length = 9 + len(checked) + len(body)
    # Offset 0 and leader epoch -1: the leader overwrites both when it appends, without a new
    # checksum, because the checksum does not cover them.
    return struct.pack(">qiibI", 0, length, -1, MAGIC, crc) + checked + body


def records_of(batch: bytes, base_offset: int) -> Iterator[Record]:
    """The records of a batch; none for a control batch. Raises UnreadableBatch."""
    return _records_in(batch, base_offset, UNPACKED_BYTES, is_whole=True)


def _records_in(batch: bytes, base_offset: int, most: int, *, is_whole: bool) -> Iterator[Record]:
    """Decompresses `most` bytes. If all records are wanted, that is too little for a longer one."""
    attributes, base_timestamp = HEADER.unpack_from(batch)[5:8:2]
    if attributes & CONTROL:
        return
    body, at = batch[HEADER.size :], 0
    match attributes & COMPRESSION:
        case 0:
            pass
        case 1:
            body = _unpacked(body, most, is_whole=is_whole)
        case kind:
            raise UnreadableBatch(f"compression {kind}")
    while at < len(body):
        length, at = _read_varint(body, at)
        end = at + length
        if not at < end <= len(body):
            raise UnreadableBatch(f"a record of {length} bytes at byte {at} of {len(body)}")
        # The first byte has the attributes, which no version uses.
        timestamp, at = _read_varint(body, at + 1)
        offset, at = _read_varint(body, at)
        key, at = _read_field(body, at)
        value, at = _read_field(body, at)
        yield Record(base_offset + offset, base_timestamp + timestamp, key, value)
        at = end


def _unpacked(body: bytes, most: int, *, is_whole: bool) -> bytes:
    # 31 selects gzip's format. The limit of `decompress` bounds the memory, and `eof` shows whether
    # data was left.
    unpacking = zlib.decompressobj(wbits=31)
    try:
        data = unpacking.decompress(body, most)
    except zlib.error as error:
        raise UnreadableBatch(str(error)) from None
    if is_whole and not unpacking.eof:
        raise UnreadableBatch(f"cut off, or more than {most:,} bytes when unpacked")
    return data


def max_timestamp(batch: bytes) -> int:
    """Of its records, as its header has it."""
    return int(HEADER.unpack_from(batch)[8]) if len(batch) >= HEADER.size else -1


def first_not_before(
    batch: bytes, base_offset: int, timestamp_ms: int, from_offset: int = 0
) -> Record | None:
    """The first record from `from_offset` on with that timestamp or a later one; None if the header
    says that there is none. Kafka reads all records when a batch is produced, and sets the header's
    time itself. Here the first record represents all of a batch that does not show such a record in
    bounded time: its records cannot be read, are too many, or are all earlier."""
    base_ms, max_ms = HEADER.unpack_from(batch)[7:9]
    if max_ms < timestamp_ms:
        return None
    records = _records_in(batch, base_offset, LOOKED_AT_BYTES, is_whole=False)
    try:
        for record in islice(records, LOOKED_AT):
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return record
    except UnreadableBatch:
        pass
    return Record(max(base_offset, from_offset), base_ms, None, None)


def _field(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _read_field(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _read_varint(data, at)
    if length > len(data) - at:
        raise UnreadableBatch(f"{length} bytes at byte {at} of {len(data)}")
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _varint(value: int) -> bytes:
    """Zigzag encoding."""
    left, out = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise UnreadableBatch(f"a number at byte {at} of {len(data)}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
