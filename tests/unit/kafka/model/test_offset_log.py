"""One replica's log: reads within limits, truncation, epochs, the rules of the high watermark."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from emulator.kafka.model.errors import UnexpectedAppendOffset
from emulator.kafka.model.offset_log import (
    UNDEFINED_EPOCH,
    Batch,
    EpochCache,
    EpochEntry,
    OffsetLog,
)

properties = settings(derandomize=True, deadline=None)


def log_of(*sizes: int, records: int = 1, epoch: int = 0) -> OffsetLog:
    """One batch of these many bytes after the other."""
    log = OffsetLog()
    for size in sizes:
        log.append_as_leader(records, size, epoch)
    return log


def bases(batches: tuple[Batch, ...]) -> list[int]:
    return [b.base_offset for b in batches]


# -- reading ---------------------------------------------------------------------------------------


def test_a_read_returns_whole_batches_as_far_as_the_limit_goes() -> None:
    log = log_of(100, 100, 100)
    assert bases(log.read(0, 250, at_least_one=True)) == [0, 1]
    assert bases(log.read(0, 300, at_least_one=True)) == [0, 1, 2]
    assert bases(log.read(1, 200, at_least_one=True)) == [1, 2]


def test_the_first_batch_comes_in_any_case_only_where_at_least_one_is_asked_for() -> None:
    log = log_of(100, 100)
    assert bases(log.read(0, 99, at_least_one=True)) == [0]
    assert log.read(0, 99, at_least_one=False) == ()
    assert bases(log.read(0, 0, at_least_one=True)) == [0]


def test_an_offset_inside_a_batch_brings_that_whole_batch() -> None:
    log = log_of(100, 100, records=5)
    assert bases(log.read(7, 1000, at_least_one=True)) == [5]


def each_alone(*sizes: int, records: int) -> OffsetLog:
    log = OffsetLog()
    log.record_batches = False
    for size in sizes:
        log.append_as_leader(records, size, 0)
    return log


def test_before_there_were_batches_a_read_begins_at_its_very_offset() -> None:
    log = each_alone(100, 100, records=5)
    assert bases(log.read(7, 1000, at_least_one=True)) == [7, 8, 9]
    assert bases(log.read(7, 40, at_least_one=True)) == [7, 8]
    log.truncate_to(3)
    assert (log.log_end_offset, bases(log.read(0, 1000, at_least_one=True))) == (3, [0, 1, 2])


@properties
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_records_alone_are_as_many_and_have_as_many_bytes_as_their_batch(
    records: int, size: int
) -> None:
    alone = list(Batch(10, 10 + records, size, 3).alone())
    assert [b.base_offset for b in alone] == list(range(10, 10 + records))
    assert sum(b.size for b in alone) == size
    assert {(b.next_offset - b.base_offset, b.leader_epoch) for b in alone} == {(1, 3)}


def test_at_the_end_there_is_nothing_to_read() -> None:
    log = log_of(100)
    assert log.read(1, 1000, at_least_one=True) == ()
    assert log.read(9, 1000, at_least_one=True) == ()


def test_bytes_are_counted_from_the_batch_of_the_offset_up_to_a_limit() -> None:
    log = log_of(100, 200, 300, records=2)
    assert log.bytes_from(0, 10_000) == 600
    assert log.bytes_from(3, 10_000) == 500
    assert log.bytes_from(0, 250) == 250
    assert log.bytes_from(6, 10_000) == 0


SIZES = st.lists(st.integers(1, 300), max_size=12)


@properties
@given(SIZES, st.integers(0, 14), st.integers(0, 1000), st.booleans())
def test_a_read_is_the_longest_row_of_batches_that_fits(
    sizes: list[int], offset: int, max_bytes: int, at_least_one: bool
) -> None:
    log = log_of(*sizes)
    found = log.read(offset, max_bytes, at_least_one=at_least_one)
    assert bases(found) == list(range(offset, offset + len(found)))
    used = sum(b.size for b in found)
    forced = at_least_one and len(found) == 1 and used > max_bytes
    assert used <= max_bytes or forced
    if offset + len(found) < len(sizes) and not forced:
        next_size = sizes[offset + len(found)]
        assert used + next_size > max_bytes
        assert found or not at_least_one


# -- appending -------------------------------------------------------------------------------------


def test_a_follower_takes_only_what_follows_its_own_end() -> None:
    log = log_of(100)
    log.append_as_follower((Batch(1, 3, 50, 0), Batch(3, 4, 50, 0)))
    assert log.log_end_offset == 4
    with pytest.raises(AssertionError, match="does not follow 4"):
        log.append_as_follower((Batch(5, 6, 50, 0),))
    with pytest.raises(UnexpectedAppendOffset, match=r"first offset 3 is less than .* 4"):
        log.append_as_follower((Batch(3, 6, 50, 0),))
    assert log.log_end_offset == 4


def test_each_new_epoch_is_noted_where_its_first_record_lies() -> None:
    log = OffsetLog()
    for epoch in (2, 2, 5, 5, 9):
        log.append_as_leader(2, 100, epoch)
    assert log.epochs.entries == [(2, 0), (5, 4), (9, 8)]
    assert [log.epoch_at(o) for o in (0, 3, 4, 8, 9, 10, 99)] == [2, 2, 5, 9, 9, -1, -1]


# -- the epoch cache (spec §5.4) -------------------------------------------------------------------

CACHE = EpochCache((EpochEntry(3, 10), EpochEntry(5, 20), EpochEntry(8, 30)))


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        pytest.param(-1, (-1, -1), id="no epoch: undefined"),
        pytest.param(9, (-1, -1), id="above all: undefined"),
        pytest.param(8, (8, 44), id="the latest: the log's end"),
        pytest.param(2, (2, 10), id="below the first: where the first begins"),
        pytest.param(3, (3, 20), id="a known one: where the next begins"),
        pytest.param(4, (3, 20), id="one between: the largest below it"),
        pytest.param(5, (5, 30), id="another known one"),
        pytest.param(7, (5, 30), id="another one between"),
    ],
)
def test_the_leaders_answer_about_an_epoch(epoch: int, answer: tuple[int, int]) -> None:
    assert CACHE.end_offset_for(epoch, 44) == answer


def test_an_empty_cache_knows_nothing() -> None:
    assert EpochCache().end_offset_for(3, 44) == (-1, -1)
    assert EpochCache().latest_epoch is None


def assigned(*entries: tuple[int, int], is_monotonic: bool = True) -> EpochCache:
    cache = EpochCache()
    cache.is_monotonic = is_monotonic
    for epoch, start in entries:
        cache.assign(epoch, start)
    return cache


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        pytest.param([(5, 20), (5, 30)], [(5, 20)], id="shouldNotOverwriteOffsetForALeaderEpoch"),
        pytest.param([(5, 20), (5, 10)], [(5, 10)], id="an earlier start of the same epoch"),
        pytest.param(
            [(3, 10), (5, 20), (6, 30), (7, 20)],
            [(3, 10), (7, 20)],
            id="a later epoch begins earlier",
        ),
        pytest.param(
            [(5, 11), (6, 12), (7, 13), (7, 12)], [(5, 11), (7, 12)], id="ends epoch 6 at 12"
        ),
        pytest.param([(1, 5), (2, 6), (1, 7)], [(1, 7)], id="shouldEnforceMonotonicallyIncreasing"),
    ],
)
def test_the_last_assignment_of_an_epoch_wins(
    entries: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    """LeaderEpochFileCacheTest@2.6.3."""
    assert assigned(*entries).entries == left


def test_an_epoch_that_was_superseded_ends_where_the_last_assignment_begins() -> None:
    """LeaderEpochFileCacheTest.shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested
    and what follows."""
    assert assigned((5, 11), (6, 12), (7, 13), (7, 12)).end_offset_for(6, 20) == (5, 12)


def test_up_to_2_0_0_an_epoch_that_is_not_later_is_ignored() -> None:
    cache = assigned((5, 11), (6, 12), (6, 10), (4, 30), (7, 10), is_monotonic=False)
    assert cache.entries == [(5, 11), (6, 12)]
    assert cache.end_offset_for(4, 30) == (-1, -1), "below the first one"


def test_up_to_2_0_0_two_epochs_may_have_one_start() -> None:
    """LeaderEpochFileCacheTest.shouldAllowLeaderEpochToChangeEvenIfOffsetDoesNot@1.1.1."""
    assert assigned((2, 9), (3, 9), is_monotonic=False).entries == [(2, 9), (3, 9)]
    assert assigned((2, 9), (3, 9)).entries == [(3, 9)]


def test_truncation_to_a_segments_base_leaves_it_empty() -> None:
    log = OffsetLog()
    log.segment_bytes = 100
    for time_ms in (10, 20, 30):
        log.append_as_leader(1, 100, 0, timestamp_ms=time_ms)
    log.truncate_to(2)
    assert [(s.base_offset, s.size, s.largest_ms) for s in log.segments] == [
        (0, 100, 10),
        (1, 100, 20),
        (2, 0, -1),
    ]


@properties
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=12))
def test_epochs_and_their_starts_always_rise(entries: list[tuple[int, int]]) -> None:
    left = assigned(*entries).entries
    assert left == sorted(set(left))
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(left))


def test_truncation_forgets_epochs_that_begin_at_or_behind_it() -> None:
    cache = EpochCache((EpochEntry(3, 10), EpochEntry(5, 20), EpochEntry(8, 30)))
    cache.truncate_from_end(20)
    assert cache.entries == [(3, 10)]


# -- truncation ------------------------------------------------------------------------------------


def test_truncation_cuts_batches_epochs_and_the_high_watermark() -> None:
    log = OffsetLog()
    for epoch in (1, 2, 3):
        log.append_as_leader(10, 100, epoch)
    log.high_watermark = 25
    assert log.truncate_to(15)
    assert (log.log_end_offset, log.high_watermark) == (15, 15)
    assert [(b.base_offset, b.next_offset) for b in log.batches] == [(0, 10), (10, 15)]
    assert log.epochs.entries == [(1, 0), (2, 10)]


@pytest.mark.parametrize("offset", [1, 5])
@pytest.mark.parametrize(("drops", "left"), [(True, [(0, 0)]), (False, [(0, 0), (4, 1)])])
def test_truncation_to_the_end_or_beyond_it_drops_an_epoch_without_a_record(
    offset: int, drops: bool, left: list[tuple[int, int]]
) -> None:
    """LogTest.testTruncateToEndOffsetClearsEpochCache@2.6.1 (KAFKA-10706)."""
    log = log_of(100)
    log.epochs.assign(4, 1)
    log.drops_epochs_at_end = drops
    assert not log.truncate_to(offset)
    assert (log.log_end_offset, log.epochs.entries) == (1, left)


def test_truncation_before_the_first_record_starts_the_log_there() -> None:
    """LogTest.testTruncateTo, its last step: truncate before the first segment."""
    log = OffsetLog()
    log.truncate_fully_and_start_at(50)
    log.append_as_leader(10, 100, 5)
    assert log.truncate_to(40)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 40, 40)
    assert (log.batches, log.epochs.entries, log.recovery_point) == ([], [], 40)
    assert log.append_as_leader(1, 100, 6).base_offset == 40


def test_records_of_a_lower_epoch_replace_an_epoch_without_a_record() -> None:
    """The log of a follower that led without a record, and was not truncated."""
    log = log_of(100, 100, epoch=1)
    log.epochs.assign(5, 2)
    log.append_as_follower((Batch(2, 3, 100, 4),))
    assert log.epochs.entries == [(1, 0), (4, 2)]


def test_starting_anew_forgets_everything() -> None:
    log = log_of(100, 100, epoch=4)
    log.truncate_fully_and_start_at(50)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (50, 50, 50)
    assert (log.batches, log.epochs.latest_epoch) == ([], None)
    log.append_as_leader(1, 100, 5)
    assert bases(log.read(50, 1000, at_least_one=True)) == [50]


# -- the high watermark (spec §3.5) ----------------------------------------------------------------


def test_a_leaders_high_watermark_only_rises_and_never_passes_the_end() -> None:
    log = log_of(100, 100, 100)
    assert log.maybe_increment_high_watermark(2)
    assert not log.maybe_increment_high_watermark(2)
    assert not log.maybe_increment_high_watermark(1)
    assert log.high_watermark == 2
    with pytest.raises(AssertionError, match="high watermark 4 beyond log end 3"):
        log.maybe_increment_high_watermark(4)


def test_a_followers_high_watermark_is_set_between_its_own_start_and_end() -> None:
    log = log_of(100, 100, 100)
    assert log.update_high_watermark(9)
    assert log.high_watermark == 3
    assert log.update_high_watermark(1)
    assert log.high_watermark == 1
    assert not log.update_high_watermark(1)
    log.log_start_offset = 2
    log.update_high_watermark(0)
    assert log.high_watermark == 2


# -- all of it, against a list of records ----------------------------------------------------------


class LogIsAListOfRecords(RuleBasedStateMachine):
    """Appends, truncations and watermarks on a log, and on a plain list of (epoch, size)."""

    def __init__(self) -> None:
        super().__init__()
        self.log, self.epoch, self.high_watermark = OffsetLog(), 0, 0
        self.records: list[int] = []

    @rule(count=st.integers(1, 4), later=st.booleans())
    def append(self, count: int, later: bool) -> None:
        self.epoch += later
        self.log.append_as_leader(count, 100, self.epoch)
        self.records += [self.epoch] * count

    @rule(offset=st.integers(0, 12))
    def truncate(self, offset: int) -> None:
        assert self.log.truncate_to(offset) is (offset < len(self.records))
        del self.records[offset:]
        self.high_watermark = min(self.high_watermark, len(self.records))

    @rule(offset=st.integers(0, 12))
    def follower_hears_a_high_watermark(self, offset: int) -> None:
        self.log.update_high_watermark(offset)
        self.high_watermark = min(offset, len(self.records))

    @rule(offset=st.integers(0, 12))
    def leader_raises_its_high_watermark(self, offset: int) -> None:
        if offset <= len(self.records):
            self.log.maybe_increment_high_watermark(offset)
            self.high_watermark = max(self.high_watermark, offset)

    @invariant()
    def offsets_agree(self) -> None:
        assert self.log.log_end_offset == len(self.records)
        assert self.log.high_watermark == self.high_watermark

    @invariant()
    def every_offset_has_its_epoch(self) -> None:
        found = [self.log.epoch_at(o) for o in range(len(self.records) + 1)]
        assert found == [*self.records, UNDEFINED_EPOCH]

    @invariant()
    def batches_follow_each_other(self) -> None:
        ends = [b.next_offset for b in self.log.batches]
        starts = [b.base_offset for b in self.log.batches]
        assert starts == [0, *ends][: len(starts)]
        assert (ends[-1] if ends else 0) == len(self.records)

    @invariant()
    def epochs_rise_and_end_where_the_next_begins(self) -> None:
        entries = self.log.epochs.entries
        assert entries == [
            (epoch, self.records.index(epoch)) for epoch in dict.fromkeys(self.records)
        ]
        for epoch in dict.fromkeys(self.records):
            end = self.log.epochs.end_offset_for(epoch, self.log.log_end_offset)
            assert end == (epoch, len(self.records) - self.records[::-1].index(epoch))


LogIsAListOfRecords.TestCase.settings = settings(
    derandomize=True, deadline=None, max_examples=80, stateful_step_count=25
)
TestLogIsAListOfRecords = LogIsAListOfRecords.TestCase
