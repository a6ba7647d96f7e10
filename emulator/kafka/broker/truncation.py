"""Where a follower has to truncate to, from the leader's answer about an epoch. Plain functions.

Source: server/AbstractFetcherThread.scala@2.6.3 getOffsetTruncationState (KIP-279); spec §5.4.
"""

from __future__ import annotations

from typing import NamedTuple

from emulator.kafka.model.offset_log import UNDEFINED_EPOCH, UNDEFINED_OFFSET, OffsetLog


class TruncationState(NamedTuple):
    """The offset to truncate to, and whether that ends the truncation (False: ask again)."""

    offset: int
    done: bool


def offset_truncation_state(
    log: OffsetLog, initial_offset: int, leader_epoch: int, end_offset: int
) -> TruncationState:
    """`leader_epoch` and `end_offset` are the leader's answer; `initial_offset` is the high
    watermark with which the partition was added."""
    # The leader knows nothing of this epoch: back to the high watermark of when it was added.
    if end_offset == UNDEFINED_OFFSET:
        return TruncationState(min(initial_offset, log.log_end_offset), done=True)
    # A leader before 2.0 says only where the epoch ended (protocol v0).
    if leader_epoch == UNDEFINED_EPOCH:
        return TruncationState(min(end_offset, log.log_end_offset), done=True)
    mine = log.epochs.end_offset_for(leader_epoch, log.log_end_offset)
    # Every record here is of a later epoch than the leader's answer.
    if mine.start_offset == UNDEFINED_OFFSET:
        return TruncationState(min(end_offset, log.log_end_offset), done=True)
    # The leader's epoch was never heard of here: cut to where the one before it ended, and ask
    # again with that one, until both know the same epoch (KIP-279).
    if mine.epoch != leader_epoch:
        return TruncationState(min(mine.start_offset, log.log_end_offset), done=False)
    return TruncationState(min(mine.start_offset, end_offset, log.log_end_offset), done=True)
