"""Where a follower truncates to: the table of spec §5.4, row by row, and its consequences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.truncation import TruncationState, offset_truncation_state
from emulator.kafka.model.offset_log import OffsetLog

properties = settings(derandomize=True, deadline=None)


def log_of(*lengths: tuple[int, int], high_watermark: int = 0) -> OffsetLog:
    """A log whose epochs go up to these offsets: (epoch, end)."""
    log = OffsetLog(high_watermark)
    for epoch, end in lengths:
        if end > log.log_end_offset:
            log.append_as_leader(end - log.log_end_offset, 100, epoch)
    return log


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param((-1, -1), TruncationState(4, True), id="undefined: the initial offset"),
        pytest.param((-1, 7), TruncationState(7, True), id="an offset alone: that offset"),
        pytest.param((-1, 70), TruncationState(20, True), id="... or the own end"),
        pytest.param((2, 7), TruncationState(0, True), id="before the own first epoch: its start"),
        pytest.param((7, 18), TruncationState(18, True), id="beyond the own epochs: its offset"),
        pytest.param((7, 70), TruncationState(20, True), id="... or again the own end"),
        pytest.param((4, 70), TruncationState(10, False), id="another epoch: the own end of it"),
        pytest.param((3, 8), TruncationState(8, True), id="the same epoch, ended earlier there"),
        pytest.param((3, 12), TruncationState(10, True), id="the same epoch, ended earlier here"),
        pytest.param((6, 18), TruncationState(18, True), id="the latest epoch, shorter there"),
        pytest.param((6, 25), TruncationState(20, True), id="the latest epoch, longer there"),
    ],
)
def test_the_reaction_to_the_leaders_answer(
    answer: tuple[int, int], expected: TruncationState
) -> None:
    """The own log: epoch 3 from 0 to 10, epoch 5 to 15, epoch 6 to 20; added at offset 4."""
    log = log_of((3, 10), (5, 15), (6, 20))
    assert offset_truncation_state(log, 4, *answer) == expected


def test_a_log_without_epochs_is_cut_to_the_leaders_answer() -> None:
    log = log_of((0, 10))
    log.epochs.entries.clear()
    assert offset_truncation_state(log, 4, 3, 7) == (7, True)
    assert offset_truncation_state(log, 4, 3, 70) == (10, True)


def test_an_initial_offset_beyond_the_own_end_is_cut_to_it() -> None:
    assert offset_truncation_state(log_of((3, 10)), 99, -1, -1) == (10, True)


HISTORY = st.lists(st.integers(1, 3), min_size=1, max_size=6)


@properties
@given(HISTORY, HISTORY, HISTORY)
def test_asking_until_done_ends_where_the_logs_begin_to_differ(
    common: list[int], mine: list[int], theirs: list[int]
) -> None:
    """Two logs with one beginning; afterwards my epochs are odd and the leader's are even."""
    follower, leader = OffsetLog(), OffsetLog()
    for epoch, count in enumerate(common):
        for log in (follower, leader):
            log.append_as_leader(count, 100, epoch)
    split = leader.log_end_offset
    for log, counts, first in (
        (follower, mine, len(common) * 2 + 1),
        (leader, theirs, len(common) * 2 + 2),
    ):
        for n, count in enumerate(counts):
            log.append_as_leader(count, 100, first + 2 * n)
    for _ in range(20):
        epoch = follower.epochs.latest_epoch
        assert epoch is not None
        ended = leader.epochs.end_offset_for(epoch, leader.log_end_offset)
        found = offset_truncation_state(follower, 0, ended.epoch, ended.start_offset)
        follower.truncate_to(found.offset)
        if found.done:
            break
    assert found.done
    if leader.epochs.latest_epoch is not None and ended.start_offset >= 0:
        assert follower.log_end_offset == split
