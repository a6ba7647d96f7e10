"""Finds the valid part of a segment file after a process that may have been killed.

A batch is valid if its checksum matches and it continues the log: it starts where the last one
ended, or after a known gap, and its leader epoch is possible there. The checksum covers neither
offset nor epoch. The epoch file may lack an epoch because a crash of the machine lost its last
rename. But epochs rise along a log, so an epoch above the file's and above those of later batches
is damage. After the last valid batch, further whole batches distinguish corruption from an
interrupted write. Kafka truncates both in the same way (Log.scala@2.6.3 recoverLog).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from emulator.kafka.model.offset_log import Batch
from emulator.kafka.model.record_batch import HEADER, MAGIC
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.records import Head, read_batches

_MAGIC_AT = 16


Gaps = Mapping[int, int]
"""Where the log has no records: from which offset to which. A truncation inside a batch removes the
batch, but the next record gets the offset of the truncation (LogSegment.scala@2.6.3 truncateTo)."""


class Recovered(msgspec.Struct, frozen=True):
    """The valid batches of a segment, their total size, and the fault of the next one; empty if
    nothing follows."""

    batches: tuple[Batch, ...]
    size: int
    problem: str


def recover(
    data: bytes, next_offset: int, latest_epoch: int | None, gaps: Gaps, following: bytes = b""
) -> Recovered:
    """`latest_epoch` is from the epoch file; None if the file has none: epochs are then not
    checked. `following` is the next segment."""
    batches: list[Batch] = []
    size, problem = 0, ""
    try:
        for batch in read_batches(data):
            if batch.base_offset not in (next_offset, gaps.get(next_offset)):
                problem = f"a batch has offset {batch.base_offset}, not {next_offset}"
                break
            if batch.leader_epoch < 0:
                problem = f"the batch at {next_offset} has leader epoch {batch.leader_epoch}"
                break
            last = batches[-1].leader_epoch if batches else 0
            if latest_epoch is not None and last > max(latest_epoch, batch.leader_epoch):
                break  # see below
            batches.append(batch)
            size += batch.size
            next_offset = batch.next_offset
        else:
            if size < len(data):
                problem = f"a batch of which there are only {len(data) - size} bytes"
    except Malformed as error:
        problem = str(error)
    following = data[size:] or following
    if batches and latest_epoch is not None and len(following) >= HEADER.size:
        head, last = Head(following, 0), batches[-1].leader_epoch
        # A torn write may leave zeros there, which are not a batch.
        if head.magic == MAGIC and 0 <= head.leader_epoch < last > latest_epoch:
            while batches and batches[-1].leader_epoch == last:
                size -= batches[-1].size
                problem = f"the batch at {batches.pop().base_offset} has leader epoch {last}"
    return Recovered(tuple(batches), size, problem)


def offset_behind(data: bytes, at: int, next_offset: int) -> int:
    """The end of the whole batches somewhere after `at`; `next_offset` if there are none. The
    length of the batch at `at` may itself be damaged, so later batches are found by magic byte and
    checksum.
    """
    end, most = next_offset, next_offset + len(data)
    while (magic := data.find(bytes([MAGIC]), at + _MAGIC_AT)) >= 0:
        start = magic - _MAGIC_AT
        at = start + 1
        if len(data) - start < HEADER.size:
            break
        head = Head(data, start)
        # Check the offset first: computing a checksum costs as much as the batch is long.
        if not next_offset <= head.base_offset < most:
            continue
        try:
            batch = next(read_batches(data[start : start + max(head.size, HEADER.size)]), None)
        except Malformed:
            continue
        if batch is not None:
            end, at = max(end, batch.next_offset), start + batch.size
    return end
