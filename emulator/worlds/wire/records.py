"""Record batches, format 2: header and checksum; the records themselves are not read.

Of a batch a broker reads how many offsets it has, and writes only what precedes the checksum: base
offset and leader epoch. Source: DefaultRecordBatch.java@2.6.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import crc32c

from emulator.kafka.model.offset_log import Batch
from emulator.kafka.model.producer_state import BatchProducer
from emulator.kafka.model.record_batch import (
    BEFORE_LENGTH,
    CHECKED_FROM,
    HEADER,
    MAGIC,
    batch_of,
)
from emulator.worlds.wire.errors import Malformed


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
        self.size = BEFORE_LENGTH + length
        self.producer = BatchProducer(*fields[9:12]) if fields[9] >= 0 else None


def read_batches(data: bytes) -> Iterator[Batch]:
    """The batches of a fetch response; an incomplete last one is left out. Raises Malformed."""
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
    """A producer's records: exactly one batch (ProduceRequest.java validateRecords). Raises
    Malformed."""
    batches = list(read_batches(data))
    if len(batches) != 1 or batches[0].size != len(data):
        raise Malformed(f"{len(batches)} record batches; expected one")
    batch = batches[0]
    # Only a log cleaner leaves fewer records than offsets: a producer's batch has no gaps.
    if Head(data, 0).records != batch.next_offset - batch.base_offset:
        raise Malformed("as many records as offsets are wanted")
    return batch


def write_batches(batches: Iterable[Batch]) -> bytes:
    """As in the log: with the offset and the leader epoch that the leader assigned."""
    return b"".join(map(written, batches))


def written(batch: Batch) -> bytes:
    """One batch as in the log. Without contents it has that many zero bytes."""
    count, now_ms = batch.next_offset - batch.base_offset, max(batch.timestamp_ms, 0)
    data = batch.data or filled(count, batch.size, now_ms)
    start = struct.pack(">qi", batch.base_offset, len(data) - BEFORE_LENGTH)
    return start + struct.pack(">i", batch.leader_epoch) + data[16:]


def filled(records: int, size: int, now_ms: int) -> bytes:
    """A batch of `records` records without keys, about `size` bytes in total."""
    each = max(0, (size - HEADER.size) // records - 12)  # a record's own fields take about 12
    return batch_of([(None, bytes(each))] * records, now_ms)
