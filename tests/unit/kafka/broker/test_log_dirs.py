"""A broker's disk: what a crash loses of it, and where new logs go."""

from __future__ import annotations

import pytest

from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.model.offset_log import OffsetLog, Segment
from emulator.trace.values import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)


def written(*counts: int, flush_every: int | None = None) -> OffsetLog:
    """One batch per count, each under an epoch of its own."""
    log = OffsetLog()
    log.flush_interval_messages = flush_every
    for epoch, count in enumerate(counts):
        log.append_as_leader(count, 100, epoch)
    return log


def disk_with(log: OffsetLog) -> Disk:
    disk = Disk()
    disk.directories[0].logs[ORDERS_0] = log
    disk.directories[0].checkpointed_high_watermarks[ORDERS_0] = log.log_end_offset
    return disk


def test_a_process_that_dies_loses_nothing_of_it() -> None:
    disk = disk_with(written(3, 2))
    disk.lose("nothing")
    assert disk.logs[ORDERS_0].log_end_offset == 5


@pytest.mark.parametrize(("every", "kept"), [(None, 0), (1, 7), (4, 5), (8, 0)])
def test_a_machine_that_dies_loses_what_lies_behind_the_last_flush(
    every: int | None, kept: int
) -> None:
    """A flush comes with the append that makes the unflushed records too many."""
    disk = disk_with(written(3, 2, 2, flush_every=every))
    disk.lose("unflushed")
    log = disk.logs[ORDERS_0]
    assert log.log_end_offset == kept
    assert all(entry.start_offset < kept for entry in log.epochs.entries)
    assert log.high_watermark <= kept


def test_what_was_flushed_is_kept() -> None:
    log = written(3)
    log.flush()
    log.append_as_leader(2, 100, 5)
    disk = disk_with(log)
    disk.lose("unflushed")
    assert disk.logs[ORDERS_0].log_end_offset == 3


def test_no_log_begins_before_its_first_segment() -> None:
    """Nothing was flushed, but the first segment's file is named after its offset."""
    log = written(4, 3, 2)
    log.high_watermark = 9
    log.segments = [Segment(0, 100), Segment(4, 100), Segment(7, 100)]
    log.delete_segments(1)
    log.maybe_increment_log_start_offset(4)
    disk_with(log).lose("unflushed")
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_what_was_truncated_is_not_flushed_any_more() -> None:
    log = written(3)
    log.flush()
    log.truncate_to(1)
    log.append_as_leader(4, 100, 5)
    disk = disk_with(log)
    disk.lose("unflushed")
    assert disk.logs[ORDERS_0].log_end_offset == 1


def test_a_new_disk_is_empty_and_works() -> None:
    disk = disk_with(written(3))
    disk.directories[0].failed = True
    disk.lose("disk")
    assert (disk.logs, disk.checkpointed_high_watermarks) == ({}, {})
    assert not disk.directories[0].failed
