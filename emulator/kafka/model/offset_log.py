"""The log of one replica: batches, log end offset, high watermark, leader epochs.

Plain and copyable: no locks, no time. A record is identified by (leader epoch, offset), since an
epoch has one leader. Sources: Log.scala@2.6.3, LeaderEpochFileCache.scala@2.6.3, spec §3.5, §5.4.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from emulator.kafka.model.errors import Errors, UnexpectedAppendOffset
from emulator.kafka.model.producer_state import BatchProducer, ProducerStateManager


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records appended together: offsets `base_offset` to `next_offset` - 1, `size` bytes. `data`
    is what a client sent, where one did; nobody here looks into it. `producer` is None where the
    client is not idempotent."""

    base_offset: int
    next_offset: int
    size: int
    leader_epoch: int
    data: bytes = b""
    producer: BatchProducer | None = None

    def alone(self) -> Iterator[Batch]:
        """Each record by itself; together they have as many bytes."""
        count = self.next_offset - self.base_offset
        for n in range(count):
            size = self.size * (n + 1) // count - self.size * n // count
            yield Batch(self.base_offset + n, self.base_offset + n + 1, size, self.leader_epoch)


class DivergingEpoch(NamedTuple):
    """The largest epoch of a leader that is not above the last one that a follower fetched, and
    where it ends there."""

    epoch: int
    end_offset: int


class ReadInfo(msgspec.Struct, frozen=True, gc=False):
    """What a read found (LogReadInfo): offsets as they were before the read."""

    batches: tuple[Batch, ...]
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    diverging_epoch: DivergingEpoch | None = None


UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochCache:
    """LeaderEpochFileCache: which epoch began where. With `is_monotonic` (2.0.1, KAFKA-7415) the
    last assignment wins, and an epoch before the first entry ends where that entry begins."""

    __slots__ = ("entries", "is_monotonic")

    def __init__(self, entries: tuple[EpochEntry, ...] = ()) -> None:
        self.entries: list[EpochEntry] = list(entries)
        self.is_monotonic = True

    @property
    def latest_epoch(self) -> int | None:
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; entries that contradict it go
        (LeaderEpochFileCache.scala@2.6.3 assign, truncateAndAppend)."""
        if self.entries:
            last = self.entries[-1]
            if last.epoch == epoch and last.start_offset <= start_offset:
                return
            # Up to 2.0.0 an epoch that is not later, or begins before the last one, is ignored.
            if not self.is_monotonic and (last.epoch >= epoch or last.start_offset > start_offset):
                return
        # A later epoch that begins at or behind this one goes, and so does a greater epoch: a
        # follower that led without a record has one, and its records come from a lower epoch.
        self.entries = [
            e for e in self.entries if e.epoch < epoch and e.start_offset < start_offset
        ]
        self.entries.append(EpochEntry(epoch, start_offset))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry:
        """(largest epoch <= `epoch`, its end offset), or undefined (spec §5.4)."""
        entries = self.entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1].epoch:
            return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        # The latest epoch has no successor that ends it: it goes on to the end of the log.
        if epoch == entries[-1].epoch:
            return EpochEntry(epoch, log_end_offset)
        # The largest epoch that is not above the one asked for ends where the next one begins.
        later = next(i for i, e in enumerate(entries) if e.epoch > epoch)
        # Older than anything here: it ends where this log's first epoch begins.
        if later == 0:
            if not self.is_monotonic:
                return EpochEntry(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
            return EpochEntry(epoch, entries[0].start_offset)
        return EpochEntry(entries[later - 1].epoch, entries[later].start_offset)

    def divergence(
        self, last_fetched_epoch: int, fetch_offset: int, log_end_offset: int
    ) -> DivergingEpoch | Errors | None:
        """None where a fetch continues this log: its last epoch reaches up to `fetch_offset` here.
        OFFSET_OUT_OF_RANGE for an epoch of which nothing is known (Partition.scala@2.8.2
        readRecords)."""
        # Nearly every fetch is of the latest epoch; -1 comes with requests before version 12.
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

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        self.entries = [e for e in self.entries if e.start_offset < end_offset]

    def clear(self) -> None:
        """Forget all epochs (clearAndFlush)."""
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
        self.flush_interval_messages: int | None = None
        self.record_batches = True
        self.drops_epochs_at_end = True

    def flush(self) -> None:
        """Everything is on the disk now; what lies behind the recovery point is not."""
        self.recovery_point = self.log_end_offset

    def append_as_leader(
        self,
        count: int,
        size: int,
        leader_epoch: int,
        data: bytes = b"",
        producer: BatchProducer | None = None,
    ) -> Batch:
        """Append `count` new records; they get the next offsets. One batch (format 2: 0.11), or,
        without `record_batches`, each message alone, where a read may begin and a log may end."""
        end = self.log_end_offset
        batch = Batch(end, end + count, size, leader_epoch, data, producer)
        for one in (batch,) if self.record_batches or data else batch.alone():
            self._append(one)
        return batch

    def append_as_follower(self, batches: tuple[Batch, ...]) -> None:
        """Append what was fetched, offsets as they are. UnexpectedAppendOffset: a leader that lost
        its log and wrote another one of the same epoch has batches of other lengths."""
        for batch in batches:
            # Kafka checks the same in appendAsFollower (UnexpectedAppendOffsetException).
            if batch.base_offset < self.log_end_offset:
                raise UnexpectedAppendOffset(batch.base_offset, self.log_end_offset)
            assert batch.base_offset == self.log_end_offset, (
                f"{batch} does not follow {self.log_end_offset}"
            )
            self._append(batch)

    def _hold(self, batch: Batch) -> None:
        """It is at the end of the log."""
        self.batches.append(batch)
        self._bases.append(batch.base_offset)
        self.log_end_offset = batch.next_offset
        if batch.producer is not None:
            self.producers.update(batch.producer, batch.base_offset, batch.next_offset)

    def _append(self, batch: Batch) -> None:
        self._hold(batch)
        entries = self.epochs.entries
        # Nearly all batches belong to the latest epoch.
        if not entries or entries[-1].epoch != batch.leader_epoch:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        # Messages since the last flush, as log.flush.interval.messages counts.
        interval = self.flush_interval_messages
        if interval is not None and self.log_end_offset - self.recovery_point >= interval:
            self.flush()

    def read(self, from_offset: int, max_bytes: int, *, at_least_one: bool) -> tuple[Batch, ...]:
        """Whole batches from `from_offset` on that fit into `max_bytes` (a batch that is cut off is
        no use to a follower); the first one in any case where `at_least_one` (Fetch v3+,
        minOneMessage)."""
        if from_offset >= self.log_end_offset:
            return ()
        # The batch that contains the offset, from its beginning: batches are never cut by a read.
        first = bisect_right(self._bases, from_offset) - 1
        used, end, batches = 0, first, self.batches
        while end < len(batches):
            used += batches[end].size
            if used > max_bytes and not (at_least_one and end == first):
                break
            end += 1
        return tuple(batches[first:end])

    def batches_from(self, offset: int) -> list[Batch]:
        """Those that begin at `offset` or behind it."""
        return self.batches[bisect_left(self._bases, offset) :]

    def bytes_from(self, from_offset: int, limit: int) -> int:
        """How many bytes lie at and behind `from_offset`, counted up to `limit`."""
        if from_offset >= self.log_end_offset:
            return 0
        total = 0
        for i in range(bisect_right(self._bases, from_offset) - 1, len(self.batches)):
            total += self.batches[i].size
            if total >= limit:
                return limit
        return total

    def truncate_to(self, offset: int) -> bool:
        """Remove records at and behind `offset`; the high watermark goes down with the log (spec
        §3.5). False: there were none. An epoch without a record goes even then, with
        `drops_epochs_at_end` (Log.scala@2.6.3 truncateTo, KAFKA-10706)."""
        if offset >= self.log_end_offset:
            if self.drops_epochs_at_end:
                self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.log_start_offset:
            # Before the first segment: the log begins again there, with nothing in it.
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
        if self.producers.entries:
            self._rebuild_producers()
        self.log_end_offset = offset
        # With the log: what was committed may be lost here (KIP-101).
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        # Last: it writes to the disk where there is one, and a write that fails must not leave a
        # high watermark beyond the log. An epoch without records is forgotten, so that the next
        # query is for one that has some.
        self.epochs.truncate_from_end(self.log_end_offset)
        return True

    def _rebuild_producers(self) -> None:
        """From the batches that are left (truncateAndReload)."""
        self.producers.clear()
        for batch in self.batches:
            if batch.producer is not None:
                self.producers.update(batch.producer, batch.base_offset, batch.next_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        # The leader's log begins behind this one's end: nothing here connects to it.
        self.batches.clear()
        self._bases.clear()
        self.producers.clear()
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = offset
        self.epochs.clear()  # last, as in truncate_to

    def maybe_increment_high_watermark(self, new: int) -> bool:
        """Raise the high watermark to `new`; it never goes down this way, and never past the log's
        end."""
        assert new <= self.log_end_offset, (
            f"high watermark {new} beyond log end {self.log_end_offset}"
        )
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def update_high_watermark(self, leader_hw: int) -> bool:
        """A follower's rule: clamp(leader's, own start, own end); set, not maximised (spec
        §3.5)."""
        # It may go down: what a new leader knows of the high watermark can be older (H17).
        new = max(self.log_start_offset, leader_hw)
        if new > self.log_end_offset:
            new = self.log_end_offset
        if new == self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset` (UNDEFINED_EPOCH where there is none)."""
        i = bisect_right(self._bases, offset) - 1
        return (
            self.batches[i].leader_epoch
            if i >= 0 and offset < self.batches[i].next_offset
            else UNDEFINED_EPOCH
        )
