"""The batches that idempotent producers have written to one log (KIP-98).

Plain and copyable, like the log that owns it. It has the epoch and the last five batches of each
producer id. A leader validates clients' batches against it. A follower, a truncation and a start
rebuild it from the batches. There are no transactions, and no producer expires while the log has
its batches. Source: log/ProducerStateManager.scala@2.6.3.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors, KafkaError

BATCHES_TO_RETAIN = 5
"""ProducerStateEntry.NumBatchesToRetain: a client may have five requests in flight."""

MAX_SEQUENCE = 2**31 - 1


class BatchProducer(msgspec.Struct, frozen=True, gc=False):
    """The producer of a batch; `base_sequence` belongs to the batch's first record."""

    producer_id: int
    producer_epoch: int
    base_sequence: int

    def last_sequence(self, records: int) -> int:
        """The sequence number of the batch's last record; the greatest number is followed by 0
        (DefaultRecordBatch.java@2.6.3 incrementSequence)."""
        return (self.base_sequence + records - 1) % (MAX_SEQUENCE + 1)


class BatchMetadata(NamedTuple):
    """One batch in the log: its first and last sequence number, its first offset and the next
    one."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    next_offset: int


class ProducerStateEntry:
    """One producer: its epoch and its last batches."""

    __slots__ = ("batches", "producer_epoch")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)


class ProducerStateManager:
    """All producers of one log, by producer id."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, ProducerStateEntry] = {}

    def duplicate_of(self, producer: BatchProducer, records: int) -> BatchMetadata | None:
        """The stored batch that a client has sent again, if it is among the last five."""
        entry = self.entries.get(producer.producer_id)
        if entry is None or entry.producer_epoch != producer.producer_epoch:
            return None
        # Both ends must match: a retry that was split differently is another batch
        # (ProducerStateManager.scala@2.6.3 findDuplicateBatch).
        sequences = (producer.base_sequence, producer.last_sequence(records))
        return next((b for b in entry.batches if b[:2] == sequences), None)

    def check(self, producer: BatchProducer, *, accepts_unknown: bool) -> None:
        """Raise KafkaError unless the batch may be appended. `accepts_unknown`: a producer without
        any batch in the log may start with any sequence number (ProducerAppendInfo
        checkProducerEpoch, checkSequence).
        """
        entry = self.entries.get(producer.producer_id)
        sequence = producer.base_sequence
        if entry is None:
            if sequence and not accepts_unknown:
                raise KafkaError(Errors.UNKNOWN_PRODUCER_ID)
        elif producer.producer_epoch < entry.producer_epoch:
            raise KafkaError(Errors.INVALID_PRODUCER_EPOCH)
        # A new epoch starts at 0: any other number means that earlier records were lost.
        elif producer.producer_epoch > entry.producer_epoch:
            if sequence:
                raise KafkaError(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
        elif sequence != (entry.batches[-1].last_sequence + 1) % (MAX_SEQUENCE + 1):
            raise KafkaError(Errors.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def update(self, producer: BatchProducer, base_offset: int, next_offset: int) -> None:
        """A batch was appended. A follower accepts its leader's batches without validation, even an
        older epoch (AppendOrigin.Replication)."""
        entry = self.entries.get(producer.producer_id)
        if entry is None or entry.producer_epoch != producer.producer_epoch:
            entry = self.entries[producer.producer_id] = ProducerStateEntry(producer.producer_epoch)
        last = producer.last_sequence(next_offset - base_offset)
        entry.batches.append(BatchMetadata(producer.base_sequence, last, base_offset, next_offset))

    def clear(self) -> None:
        self.entries.clear()
