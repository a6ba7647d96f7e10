"""The storage code on a disk that fails: every call in turn, and a crash of the machine anywhere.

What was acknowledged is there, or the directory is offline; after a crash what was flushed is.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kernel.rng import Stream
from emulator.trace.values import TopicPartition
from emulator.worlds.storage.modelled_disk import PAGE, Fault, ModelledDisk
from emulator.worlds.storage.stored_logs import StoredDirectory
from emulator.worlds.wire.records import filled

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 0)
FOLDER = Path("/data")
BATCH = {n: filled(n, 200, 0) for n in (1, 2, 3)}
SEGMENT_BYTES = 450
"""Two batches."""


class Writer:
    """A broker's storage over two processes: its operations, and their results."""

    def __init__(self, disk: ModelledDisk) -> None:
        self.disk = disk
        self.messages: list[str] = []
        self.acknowledged: list[tuple[int, int]] = []
        """Base offset and leader epoch of each batch of `orders`."""
        self.marks: dict[TopicPartition, int] = {}
        self.bills = 0

    def open(self) -> StoredDirectory:
        self.directory = StoredDirectory(self.disk, 0, FOLDER, SEGMENT_BYTES, self.messages.append)
        return self.directory

    def append(self, log: OffsetLog, count: int, epoch: int) -> None:
        batch = log.append_as_leader(count, len(BATCH[count]), epoch, BATCH[count])
        self.acknowledged.append((batch.base_offset, epoch))

    def checkpoint(self, marks: dict[TopicPartition, int]) -> None:
        self.directory.checkpoint(marks)
        if not self.directory.failed:
            self.marks = marks

    def truncate(self, log: OffsetLog, offset: int) -> None:
        # Not sure from here on: what is behind may be there or not.
        self.acknowledged = [one for one in self.acknowledged if one[0] < offset]
        log.truncate_to(offset)

    def work(self) -> None:
        """Segments, epochs, flushes, checkpoints, truncations, a deletion; two lives. KafkaError:
        the directory has failed."""
        directory = self.open()
        log = directory.open_log(ORDERS)
        self.append(log, 2, 0)
        self.append(log, 1, 0)
        self.checkpoint({ORDERS: 2})
        log.flush()
        for epoch in (1, 1, 3, 3, 3):
            self.append(log, 1, epoch)
        directory.open_log(BILLS).append_as_leader(1, 200, 0, BATCH[1])
        self.bills = 1
        log.flush()
        self.truncate(log, 5)
        self.append(log, 3, 4)
        directory.remove_log(BILLS)
        if directory.failed:
            return
        directory.close()
        directory = self.open()
        if directory.failed:
            return
        log = directory.open_log(ORDERS)
        self.append(log, 1, 5)
        self.checkpoint({ORDERS: log.log_end_offset})
        log.flush()


def batches(log: OffsetLog) -> list[tuple[int, int]]:
    return [(batch.base_offset, batch.leader_epoch) for batch in log.batches]


def calls_of_the_work() -> int:
    disk = ModelledDisk(Stream(0).below)
    Writer(disk).work()
    return disk.calls


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("count", [1, 0], ids=["once", "for-ever"])
def test_whichever_call_fails_nothing_acknowledged_is_lost_and_the_directory_is_offline(
    count: int, code: int
) -> None:
    """The first call fails, the second, and so on to the last (SQLite's way). The directory says so
    once, serves nothing more, and the next process on a disk that works finds all that was
    acknowledged."""
    for failing in range(calls_of_the_work()):
        disk = ModelledDisk(Stream(failing).below)
        disk.faults.append(Fault(code=code, skip=failing, count=count))
        writer = Writer(disk)
        try:
            writer.work()
        except KafkaError:
            assert writer.directory.failed, failing
        assert disk.faults[0].spent or count == 0, failing
        assert writer.directory.failed, failing
        assert len(writer.messages) == 1, (failing, writer.messages)
        disk.mend()
        disk.end_process()
        again = StoredDirectory(disk, 0, FOLDER, SEGMENT_BYTES)
        assert not again.failed, (failing, again.why)
        there = batches(again.open_log(ORDERS))
        assert there[: len(writer.acknowledged)] == writer.acknowledged, failing
        if BILLS in again.logs:  # not half of it, if it was being removed
            assert len(again.logs[BILLS].batches) >= writer.bills, failing
        assert again.checkpointed_high_watermarks.get(ORDERS, 0) >= writer.marks.get(ORDERS, 0)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    flush_at=st.integers(0, 60),
    large=st.booleans(),
)
def test_a_crash_of_the_machine_loses_only_what_was_not_flushed(
    seed: int, sizes: list[int], flush_at: int, large: bool
) -> None:
    """The loaded log is a prefix of the old one, and at least its flushed part."""
    disk = ModelledDisk(Stream(seed).below)
    segment_bytes = 3 * PAGE if large else SEGMENT_BYTES
    directory = StoredDirectory(disk, 0, FOLDER, segment_bytes)
    disk.fsync_directory(Path("/"))
    log = directory.open_log(ORDERS)
    flushed = 0
    for place, count in enumerate(sizes):
        if place == flush_at:
            log.flush()
            disk.fsync_directory(FOLDER)
            flushed = log.log_end_offset
        log.append_as_leader(count, len(BATCH[count]), place // 7, BATCH[count])
    before = batches(log)
    disk.crash()
    again = StoredDirectory(disk, 0, FOLDER, segment_bytes)
    assert not again.failed, again.why
    log = again.open_log(ORDERS)
    there = batches(log)
    assert there == before[: len(there)]
    assert log.log_end_offset >= flushed
    log.append_as_leader(1, 200, 99, BATCH[1])
    third = StoredDirectory(disk, 0, FOLDER, segment_bytes)
    assert batches(third.logs[ORDERS]) == batches(log)


@given(seed=st.integers(0, 999), base=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_a_crash_while_files_are_renamed_leaves_checkpoints_that_can_be_read(
    seed: int, base: int
) -> None:
    """The old one or the new one, whole: it was flushed before it was renamed."""
    disk = ModelledDisk(Stream(seed).below)
    directory = StoredDirectory(disk, 0, FOLDER, flushes_directories=False)
    log = directory.open_log(ORDERS)
    for epoch in range(base):
        log.append_as_leader(1, 200, epoch, BATCH[1])
        directory.checkpoint({ORDERS: epoch})
    disk.crash()
    again = StoredDirectory(disk, 0, FOLDER)
    assert not again.failed, again.why
    found = again.open_log(ORDERS)
    assert again.checkpointed_high_watermarks.get(ORDERS, 0) < base
    starts = [(e.epoch, e.start_offset) for e in found.epochs.entries]
    assert starts == [(n, n) for n in range(found.log_end_offset)]
