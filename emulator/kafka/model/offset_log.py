"""The log of one replica: batches, log end offset, high watermark, leader epochs.

Plain and copyable: no locks, no time. A record is identified by (leader epoch, offset), because an
epoch has one leader. Sources: Log.scala@2.6.3, LeaderEpochFileCache.scala@2.6.3, spec §3.5, §5.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors, UnexpectedAppendOffset
from emulator.kafka.model.producer_state import BatchProducer, ProducerStateManager
from emulator.kafka.model.record_batch import max_timestamp


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records appended together: offsets `base_offset` to `next_offset` - 1, `size` bytes. `data`
    is a client's batch, if a client sent one; the log does not read it. `producer` is None if the
    client is not idempotent.
    """

    base_offset: int
    next_offset: int
    size: int
    leader_epoch: int
    data: bytes = b""
    producer: BatchProducer | None = None
    timestamp_ms: int = -1
    """Where there is no `data`, which has it; -1: not known."""

    def largest_ms(self) -> int:
        """The time stamp of its latest record; -1: not known."""
        return max_timestamp(self.data) if self.data else self.timestamp_ms

    def alone(self) -> Iterator[Batch]:
        """Each record as its own batch; their sizes add up to this batch's."""
        count = self.next_offset - self.base_offset
        for n in range(count):
            size = self.size * (n + 1) // count - self.size * n // count
            at = self.base_offset + n
            yield Batch(at, at + 1, size, self.leader_epoch, timestamp_ms=self.timestamp_ms)


class Segment(msgspec.Struct):
    """Batches from `base_offset` on that are deleted together; times are of their records, -1 where
    there are none."""

    base_offset: int
    size: int = 0
    first_ms: int = -1
    largest_ms: int = -1


class DivergingEpoch(NamedTuple):
    """The leader's largest epoch that is not above the follower's last fetched epoch, and that
    epoch's end offset."""

    epoch: int
    end_offset: int


class ReadInfo(msgspec.Struct, frozen=True, gc=False):
    """The result of a read (LogReadInfo); the offsets are those before the read."""

    batches: tuple[Batch, ...]
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    diverging_epoch: DivergingEpoch | None = None


SEGMENT_BYTES = 1 << 30
"""log.segment.bytes as Kafka has it by default."""
SEGMENT_MS = 7 * 24 * 3_600_000
"""log.roll.ms likewise."""
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochCache:
    """LeaderEpochFileCache: the start offset of each leader epoch. With `is_monotonic` (2.0.1,
    KAFKA-7415) the last assignment wins, and an epoch before the first entry ends where that entry
    starts.
    """

    __slots__ = ("entries", "is_monotonic")

    def __init__(self, entries: tuple[EpochEntry, ...] = ()) -> None:
        self.entries: list[EpochEntry] = list(entries)
        self.is_monotonic = True

    @property
    def latest_epoch(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`; contradicting entries are removed
        (LeaderEpochFileCache.scala@2.6.3 assign, truncateAndAppend)."""
        if self.entries:
            last = self.entries[-1]
            if last.epoch == epoch and last.start_offset <= start_offset:
                return
            # Up to 2.0.0 an epoch is ignored if it is not later than the last one, or starts before
            # it.
            if not self.is_monotonic and (last.epoch >= epoch or last.start_offset > start_offset):
                return
        # Later epochs that start at or after this offset are removed, and so are greater epochs: a
        # follower that led without appending a record has a greater epoch than its next records. Up
        # to 2.0.0 two epochs may have one start (LeaderEpochFileCacheTest@1.1.1).
        if self.is_monotonic:
            self.entries = [
                e for e in self.entries if e.epoch < epoch and e.start_offset < start_offset
            ]
        self.entries.append(EpochEntry(epoch, start_offset))

    def epoch_of_start(self, log_start_offset: int) -> int:
        """The epoch of the first record, or UNDEFINED_EPOCH (fetchOffsetByTimestamp, EARLIEST)."""
        known = bool(self.entries) and self.entries[0].start_offset <= log_start_offset
        return self.entries[0].epoch if known else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """(largest epoch <= `epoch`, its end offset), or undefined (spec §5.4)."""
        entries = self.entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1].epoch:
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        # The latest epoch has no successor: it extends to the log end.
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        # The largest epoch that is not above the requested one ends where the next one starts.
        later = next(i for i, e in enumerate(entries) if e.epoch > epoch)
        # Older than every entry: the epoch ends where this log's first epoch starts.
        if later == 0:
            if not self.is_monotonic:
                return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
            return EpochEntry(epoch, entries[0].start_offset)
        return EpochEntry(entries[later - 1].epoch, entries[later].start_offset)

    def divergence(
        self, last_fetched_epoch: int, fetch_offset: int, log_end_offset: int
    ) -> DivergingEpoch | Errors | None:
        """None if a fetch continues this log: its last epoch reaches `fetch_offset` here.
        OFFSET_OUT_OF_RANGE for an unknown epoch (Partition.scala@2.8.2 readRecords)."""
        # Nearly every fetch has the latest epoch; requests before version 12 have -1.
        if last_fetched_epoch in (self.latest_epoch, UNDEFINED_EPOCH):
            if last_fetched_epoch == UNDEFINED_EPOCH or fetch_offset <= log_end_offset:
                return None
            return DivergingEpoch(last_fetched_epoch, log_end_offset)
        epoch, end_offset = self.end_offset_for(last_fetched_epoch, log_end_offset)
        if end_offset == UNDEFINED_OFFSET:
            return Errors.OFFSET_OUT_OF_RANGE
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return DivergingEpoch(epoch, end_offset)
        return None

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end before `start_offset`; the one that has it begins there now."""
        later = [e for e in self.entries if e.start_offset > start_offset]
        earlier = self.entries[: len(self.entries) - len(later)]
        if earlier:
            self.entries = [EpochEntry(earlier[-1].epoch, start_offset), *later]

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that start at or after `end_offset`."""
        self.entries = [e for e in self.entries if e.start_offset < end_offset]

    def clear(self) -> None:
        """Remove all epochs (clearAndFlush)."""
        self.entries = []


class OffsetLog:
    """One replica's log."""

    __slots__ = (
        "_bases",
        "batches",
        "drops_epochs_at_end",
        "epochs",
        "flush_interval_messages",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "record_batches",
        "recovery_point",
        "segment_bytes",
        "segment_ms",
        "segments",
    )

    def __init__(self, high_watermark: int = 0) -> None:
        self.batches: list[Batch] = []
        self._bases: list[int] = []
        self.epochs = EpochCache()
        self.producers = ProducerStateManager()
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = high_watermark
        self.recovery_point = 0
        self.segments: list[Segment] = []
        """None before the first batch."""
        self.segment_bytes, self.segment_ms = SEGMENT_BYTES, SEGMENT_MS
        self.flush_interval_messages: int | None = None
        self.record_batches = True
        self.drops_epochs_at_end = True

    def flush(self) -> None:
        """All records are on disk now; records after the recovery point are not."""
        self.recovery_point = self.log_end_offset

    def append_as_leader(
        self,
        count: int,
        size: int,
        leader_epoch: int,
        data: bytes = b"",
        producer: BatchProducer | None = None,
        timestamp_ms: int = -1,
    ) -> Batch:
        """Append `count` new records at the log end, as one batch (format 2, from 0.11 on). Without
        `record_batches` each message is its own batch: a read can start and a log can end at any
        message.
        """
        end = self.log_end_offset
        batch = Batch(end, end + count, size, leader_epoch, data, producer, timestamp_ms)
        for one in (batch,) if self.record_batches or data else batch.alone():
            self._append(one)
        return batch

    def append_as_follower(self, batches: tuple[Batch, ...]) -> None:
        """Append fetched batches with their offsets. UnexpectedAppendOffset: a leader that lost its
        log and wrote a new one in the same epoch has batches with other boundaries."""
        for batch in batches:
            # Kafka makes the same check in appendAsFollower (UnexpectedAppendOffsetException).
            if batch.base_offset < self.log_end_offset:
                raise UnexpectedAppendOffset(batch.base_offset, self.log_end_offset)
            assert batch.base_offset == self.log_end_offset, (
                f"{batch} does not follow {self.log_end_offset}"
            )
            self._append(batch)

    def _hold(self, batch: Batch, timestamp_ms: int) -> None:
        """Add a batch at the end of the log; `timestamp_ms` is its `largest_ms`."""
        self.batches.append(batch)
        self._bases.append(batch.base_offset)
        self.log_end_offset = batch.next_offset
        segment = self.segments[-1]
        if not segment.size:
            segment.first_ms = timestamp_ms
        segment.size += batch.size
        if timestamp_ms > segment.largest_ms:
            segment.largest_ms = timestamp_ms
        if batch.producer is not None:
            self.producers.update(batch.producer, batch.base_offset, batch.next_offset)

    def must_roll(self, size: int, timestamp_ms: int) -> bool:
        """Whether a batch begins a segment (LogSegment.scala@2.6.3 shouldRoll)."""
        if not self.segments:
            return True
        last = self.segments[-1]
        return last.size > 0 and (
            last.size + size > self.segment_bytes
            or (last.first_ms >= 0 and timestamp_ms - last.first_ms > self.segment_ms)
        )

    def roll(self) -> None:
        """What is appended next is in a segment of its own."""
        self.segments.append(Segment(self.log_end_offset))

    def _append(self, batch: Batch) -> None:
        timestamp_ms = batch.largest_ms()
        if self.must_roll(batch.size, timestamp_ms):
            self.roll()
        self._hold(batch, timestamp_ms)
        entries = self.epochs.entries
        # Nearly all batches belong to the latest epoch: this avoids a call.
        if not entries or entries[-1].epoch != batch.leader_epoch:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        # log.flush.interval.messages counts the messages since the last flush.
        interval = self.flush_interval_messages
        if interval is not None and self.log_end_offset - self.recovery_point >= interval:
            self.flush()

    def read(self, from_offset: int, max_bytes: int, *, at_least_one: bool) -> tuple[Batch, ...]:
        """Whole batches from `from_offset` on, up to `max_bytes` (a follower cannot use a partial
        batch). With `at_least_one` the first batch is always included (Fetch v3+, minOneMessage).
        """
        if from_offset >= self.log_end_offset:
            return ()
        # Start with the batch that contains the offset: a read never splits a batch.
        first = bisect_right(self._bases, from_offset) - 1
        used, end, batches = 0, first, self.batches
        while end < len(batches):
            used += batches[end].size
            if used > max_bytes and not (at_least_one and end == first):
                break
            end += 1
        return tuple(batches[first:end])

    def bytes_from(self, from_offset: int, limit: int) -> int:
        """The number of bytes from `from_offset` on, counted up to `limit`."""
        if from_offset >= self.log_end_offset:
            return 0
        total = 0
        for i in range(bisect_right(self._bases, from_offset) - 1, len(self.batches)):
            total += self.batches[i].size
            if total >= limit:
                return limit
        return total

    def truncate_to(self, offset: int) -> bool:
        """Remove the records from `offset` on; the high watermark decreases with the log end (spec
        §3.5). False if there were none. With `drops_epochs_at_end` an epoch without records is
        removed even then (Log.scala@2.6.3 truncateTo, KAFKA-10706).
        """
        if offset >= self.log_end_offset:
            if self.drops_epochs_at_end:
                self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.log_start_offset:
            # Before the first segment: the log restarts at that offset, empty.
            self.truncate_fully_and_start_at(offset)
            return True
        keep = bisect_left(self._bases, offset)
        if keep and self.batches[keep - 1].next_offset > offset:
            cut = self.batches[keep - 1]
            if cut.data:  # nobody cuts a batch with contents: it goes (LogSegment.truncateTo)
                keep -= 1
            else:
                self.batches[keep - 1] = msgspec.structs.replace(cut, next_offset=offset)
        del self.batches[keep:], self._bases[keep:]
        while len(self.segments) > 1 and self.segments[-1].base_offset > offset:
            self.segments.pop()
        if self.segments:
            active = self.segments[-1]
            first = bisect_left(self._bases, active.base_offset)
            left = self.batches[first:]
            active.size = sum(batch.size for batch in left)
            active.largest_ms = max((batch.largest_ms() for batch in left), default=-1)
        if self.producers.entries:
            self._rebuild_producers()
        self.log_end_offset = offset
        # The high watermark follows the log end: committed records may be lost here (KIP-101).
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        # Last: this writes to the disk, if there is one, and a failed write must not leave a high
        # watermark beyond the log end. An epoch without records is removed, so that the follower's
        # next query is for an epoch that has some.
        self.epochs.truncate_from_end(self.log_end_offset)
        return True

    def _rebuild_producers(self) -> None:
        """Rebuild the producer state from the remaining batches (truncateAndReload)."""
        self.producers.clear()
        for batch in self.batches:
            if batch.producer is not None:
                self.producers.update(batch.producer, batch.base_offset, batch.next_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`."""
        # The leader's log starts after this log's end: the two cannot be joined.
        self.batches.clear()
        self._bases.clear()
        self.producers.clear()
        self.segments = [Segment(offset)]
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = offset
        self.epochs.clear()  # last, as in truncate_to

    def maybe_increment_log_start_offset(self, new: int) -> bool:
        """Records before `new` are not served any more; their segments go later. It never goes down
        this way, and never past the high watermark."""
        assert new <= self.high_watermark, (
            f"log start {new} beyond high watermark {self.high_watermark}"
        )
        if new <= self.log_start_offset:
            return False
        self.log_start_offset = new
        self.epochs.truncate_from_start(new)
        return True

    def delete_segments(self, number: int) -> None:
        """The oldest `number` go, and the log starts with the first that is left, at the latest."""
        if number == len(self.segments):
            self.roll()
        del self.segments[:number]
        first = self.segments[0].base_offset
        gone = bisect_left(self._bases, first)
        del self.batches[:gone], self._bases[:gone]

    def maybe_increment_high_watermark(self, new: int) -> bool:
        """Raise the high watermark to `new`. This never lowers it, and `new` must not exceed the
        log end."""
        assert new <= self.log_end_offset, (
            f"high watermark {new} beyond log end {self.log_end_offset}"
        )
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def update_high_watermark(self, leader_hw: int) -> bool:
        """A follower's high watermark: the leader's, clamped to its own log. It is set, not
        maximized (spec §3.5)."""
        # The value can decrease: a new leader may know an older high watermark (H17).
        new = leader_hw
        # Every response is clamped: two comparisons cost less than `min` and `max`.
        if new < self.log_start_offset:
            new = self.log_start_offset
        if new > self.log_end_offset:
            new = self.log_end_offset
        if new == self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, or UNDEFINED_EPOCH."""
        i = bisect_right(self._bases, offset) - 1
        return (
            self.batches[i].leader_epoch
            if i >= 0 and offset < self.batches[i].next_offset
            else UNDEFINED_EPOCH
        )
