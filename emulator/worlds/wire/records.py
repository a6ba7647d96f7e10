"""Record batches, format 2: header and checksum; what is in the records is their owners' business.

A broker reads of a batch how many offsets it takes, and writes into it only what is before the
checksum: base offset and leader epoch. Source: DefaultRecordBatch.java@2.6.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import crc32c

from emulator.kafka.model.offset_log import Batch
from emulator.kafka.model.producer_state import BatchProducer
from emulator.worlds.wire.errors import Malformed

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta,
baseTimestamp, maxTimestamp, producerId, producerEpoch, baseSequence, records."""

MAGIC = 2
CHECKED_FROM = 21
"""The checksum covers what is behind it."""

_BEFORE_LENGTH = 12
"""baseOffset and batchLength, which the length does not count."""


class Head:
    """The header of one batch."""

    __slots__ = (
        "base_offset",
        "count",
        "crc",
        "leader_epoch",
        "magic",
        "producer",
        "records",
        "size",
    )

    def __init__(self, data: bytes, at: int) -> None:
        if len(data) - at < HEADER.size:
            raise Malformed(f"a record batch of {len(data) - at} bytes")
        fields = HEADER.unpack_from(data, at)
        self.base_offset, length, self.leader_epoch, self.magic, self.crc = fields[:5]
        self.count, self.records = fields[6] + 1, fields[12]
        self.size = _BEFORE_LENGTH + length
        self.producer = BatchProducer(*fields[9:12]) if fields[9] >= 0 else None


def read_batches(data: bytes) -> Iterator[Batch]:
    """The batches of a fetch answer; one that is cut off at the end is left out. Malformed."""
    at = 0
    while len(data) - at >= HEADER.size:
        head = Head(data, at)
        if head.magic != MAGIC:
            raise Malformed(f"record format {head.magic}; only {MAGIC} is known")
        if head.size < HEADER.size or head.count < 1:
            raise Malformed(f"a batch of {head.size} bytes with {head.count} records")
        if at + head.size > len(data):
            return  # a fetch is cut off at its limit of bytes, in the middle of a batch
        batch = data[at : at + head.size]
        if crc32c.crc32c(batch[CHECKED_FROM:]) != head.crc:
            raise Malformed(f"the checksum of the batch at {head.base_offset} does not fit")
        base = head.base_offset
        end = base + head.count
        yield Batch(base, end, head.size, head.leader_epoch, batch, head.producer)
        at += head.size


def produced(data: bytes) -> Batch:
    """What a producer sent: exactly one batch (ProduceRequest.java validateRecords). Malformed."""
    batches = list(read_batches(data))
    if len(batches) != 1 or batches[0].size != len(data):
        raise Malformed(f"{len(batches)} record batches; one is wanted")
    batch = batches[0]
    # Only a log cleaner leaves fewer records than offsets: what a producer sends has no gaps.
    if Head(data, 0).records != batch.next_offset - batch.base_offset:
        raise Malformed("as many records as offsets are wanted")
    return batch


def write_batches(batches: Iterable[Batch]) -> bytes:
    """As they lie in a log: with the offset and the leader epoch that the leader gave them."""
    return b"".join(map(written, batches))


def written(batch: Batch) -> bytes:
    """One batch as a log has it. Where nobody gave contents, there are zeros of that size."""
    data = batch.data or filled(batch.next_offset - batch.base_offset, batch.size, 0)
    start = struct.pack(">qi", batch.base_offset, len(data) - _BEFORE_LENGTH)
    return start + struct.pack(">i", batch.leader_epoch) + data[16:]


def filled(records: int, size: int, now_ms: int) -> bytes:
    """A batch of `records` records without keys, of about `size` bytes in all."""
    each = max(0, (size - HEADER.size) // records - 12)  # a record's own fields take about 12
    body = bytearray()
    for number in range(records):
        # attributes, timestamp delta, offset delta, no key, zeros, no headers
        record = b"\0\0" + _varint(number) + b"\x01" + _varint(each) + bytes(each) + b"\0"
        body += _varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, records - 1, now_ms, now_ms, -1, -1, -1, records)
    crc = crc32c.crc32c(checked + body)
    length = 9 + len(checked) + len(body)
    return struct.pack(">qiibI", 0, length, -1, MAGIC, crc) + checked + body


def _varint(value: int) -> bytes:
    """Zigzag, of what is not negative."""
    left, out = value << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)
