"""The offset to which a follower truncates, from the leader's response for an epoch. Plain
functions.

Source: server/AbstractFetcherThread.scala@2.6.3 getOffsetTruncationState (KIP-279); spec §5.4.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator.kafka.model.offset_log import UNDEFINED_EPOCH, UNDEFINED_OFFSET, OffsetLog


class TruncationState(NamedTuple):
    """The offset to truncate to, and whether the truncation is complete (False: query again)."""

    offset: int
    done: bool


def offset_truncation_state(
    log: OffsetLog, initial_offset: int, leader_epoch: int, end_offset: int
) -> TruncationState:
    """`leader_epoch` and `end_offset` are from the leader's response; `initial_offset` is the high
    watermark with which the partition was added."""
    # The leader does not know this epoch: truncate to the high watermark of that time.
    if end_offset == UNDEFINED_OFFSET:
        return TruncationState(min(initial_offset, log.log_end_offset), done=True)
    # A leader before 2.0 returns only the end of the epoch (protocol v0).
    if leader_epoch == UNDEFINED_EPOCH:
        return TruncationState(min(end_offset, log.log_end_offset), done=True)
    mine = log.epochs.end_offset_for(leader_epoch, log.log_end_offset)
    # All local records are of later epochs than the leader's.
    if mine.start_offset == UNDEFINED_OFFSET:
        return TruncationState(min(end_offset, log.log_end_offset), done=True)
    # The leader's epoch is unknown here: truncate to the end of the epoch before it and query again
    # with that one, until both know the same epoch (KIP-279).
    if mine.epoch != leader_epoch:
        return TruncationState(min(mine.start_offset, log.log_end_offset), done=False)
    return TruncationState(min(mine.start_offset, end_offset, log.log_end_offset), done=True)
