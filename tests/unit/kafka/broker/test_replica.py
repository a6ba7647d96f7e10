"""The rules about followers: caught up, in sync, out of sync; and where the high watermark may go.

Each boundary by itself, then all rules against a second formulation of the spec's sentences (§3.2
to §3.5) over random histories.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.replica import (
    Replica,
    high_watermark_allowed,
    is_follower_in_sync,
    is_follower_out_of_sync,
)

NOW = 1_000_000_000
LAG = 30_000

properties = settings(derandomize=True, deadline=None)


def follower(broker: int = 2, *, leo: int = 10, caught_up_ms_ago: int = 0) -> Replica:
    return Replica(broker, leo, 0, 10, NOW - caught_up_ms_ago, NOW - caught_up_ms_ago)


# -- caught up (§3.2) ------------------------------------------------------------------------------


def test_a_fetch_at_the_leaders_leo_makes_it_caught_up_now() -> None:
    replica = Replica(2)
    replica.update_fetch_state(10, 0, NOW, leader_end_offset=10)
    assert replica.last_caught_up_time_ms == NOW


def test_a_fetch_at_the_leo_of_the_fetch_before_makes_it_caught_up_as_of_that_fetch() -> None:
    replica = Replica(2)
    replica.update_fetch_state(10, 0, NOW, leader_end_offset=15)
    assert replica.last_caught_up_time_ms == 0, "it has not reached 15 yet"
    replica.update_fetch_state(15, 0, NOW + 100, leader_end_offset=20)
    assert replica.last_caught_up_time_ms == NOW


def test_a_fetch_one_short_of_both_leaves_it_as_it_was() -> None:
    replica = follower(leo=10)
    replica.update_fetch_state(14, 0, NOW + 100, leader_end_offset=15)
    replica.update_fetch_state(14, 0, NOW + 200, leader_end_offset=16)
    assert replica.last_caught_up_time_ms == NOW
    assert replica.log_end_offset == 14


def test_time_never_goes_back_for_a_caught_up_follower() -> None:
    replica = Replica(2, 10, 0, 10, NOW - 500, NOW)
    replica.update_fetch_state(10, 0, NOW + 1, leader_end_offset=11)
    assert replica.last_caught_up_time_ms == NOW


def test_the_leaders_leo_of_a_fetch_replaces_the_one_before_even_if_it_went_down() -> None:
    replica = Replica(2)
    replica.update_fetch_state(5, 0, NOW, leader_end_offset=20)
    replica.update_fetch_state(5, 3, NOW + 1, leader_end_offset=8)
    assert (replica.last_fetch_leader_log_end_offset, replica.log_start_offset) == (8, 3)


def test_a_new_epoch_counts_isr_members_as_caught_up_now_and_others_as_never() -> None:
    member, other = follower(2), follower(3)
    member.reset_last_caught_up_time(12, NOW + 5, NOW + 5)
    other.reset_last_caught_up_time(12, NOW + 5, 0)
    assert (member.last_caught_up_time_ms, other.last_caught_up_time_ms) == (NOW + 5, 0)
    assert member.log_end_offset == 10
    assert member.last_fetch_leader_log_end_offset == 12


def test_a_new_leader_knows_no_offset_of_a_follower_but_keeps_its_caught_up_time() -> None:
    replica = follower()
    replica.reset_last_caught_up_time(12, NOW + 5, NOW + 5)
    replica.forget_offsets()
    assert (replica.log_end_offset, replica.last_fetch_leader_log_end_offset) == (-1, -1)
    assert (replica.last_fetch_time_ms, replica.last_caught_up_time_ms) == (0, NOW + 5)


@dataclass
class Fetches:
    """The sentence of the spec, kept literally: every fetch with the LEO that the leader had."""

    seen: list[tuple[int, int]] = field(default_factory=list)
    caught_up: int = 0

    def fetch(self, offset: int, now: int, leader_leo: int) -> int:
        """When it was caught up last: at this fetch, or at the one before, or earlier."""
        before = self.seen[-1:]
        self.seen.append((now, leader_leo))
        if offset >= leader_leo:
            self.caught_up = max(self.caught_up, now)
        elif before and offset >= before[0][1]:
            self.caught_up = max(self.caught_up, before[0][0])
        return self.caught_up


@properties
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), max_size=30))
def test_caught_up_at_t_means_some_fetch_reached_the_leo_that_the_leader_had_at_t(
    steps: list[tuple[int, int, int]],
) -> None:
    """Each step: milliseconds, records appended at the leader, records that the follower got."""
    replica, model = Replica(2, 0), Fetches()
    now, leader_leo, offset = NOW, 1, 0
    for waited, appended, got in steps:
        now, leader_leo = now + waited, leader_leo + appended
        offset = min(offset + got, leader_leo)
        replica.update_fetch_state(offset, 0, now, leader_leo)
        assert replica.last_caught_up_time_ms == model.fetch(offset, now, leader_leo)
        assert replica.log_end_offset == offset


# -- out of sync (§3.3) ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leo", "ago", "leaves"),
    [
        (9, LAG + 1, True),
        (9, LAG, False),
        (10, LAG + 1, False),
        (10, 10 * LAG, False),
        (-1, LAG + 1, True),
        (-1, LAG, False),
    ],
)
def test_out_of_sync_is_who_lacks_records_and_was_caught_up_more_than_the_lag_ago(
    leo: int, ago: int, leaves: bool
) -> None:
    replica = follower(leo=leo, caught_up_ms_ago=ago)
    assert is_follower_out_of_sync(replica, 10, NOW, LAG) is leaves


# -- in sync (§3.4) --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leo", "hw", "epoch_start", "joins"),
    [
        (10, 10, 10, True),
        (9, 10, 0, False),
        (10, 10, 11, False),
        (11, 10, 11, True),
        (5, 0, 6, False),
        (10, 10, None, False),
    ],
)
def test_in_sync_is_who_has_reached_the_high_watermark_and_the_start_of_the_epoch(
    leo: int, hw: int, epoch_start: int | None, joins: bool
) -> None:
    assert is_follower_in_sync(leo, hw, epoch_start) is joins


# -- the high watermark (§3.5) ---------------------------------------------------------------------


def allowed(*replicas: Replica, isr: tuple[int, ...] = (1, 2), leader_leo: int = 20) -> int:
    return high_watermark_allowed(leader_leo, replicas, isr, NOW, LAG)


def test_a_member_of_the_isr_holds_it_back_however_long_it_has_been_silent() -> None:
    assert allowed(follower(2, leo=7, caught_up_ms_ago=10 * LAG)) == 7


def test_a_caught_up_follower_outside_the_isr_holds_it_back_too() -> None:
    two = follower(2, leo=15)
    assert allowed(two, follower(3, leo=9, caught_up_ms_ago=LAG)) == 9


def test_one_outside_the_isr_that_is_not_caught_up_does_not() -> None:
    two = follower(2, leo=15)
    assert allowed(two, follower(3, leo=9, caught_up_ms_ago=LAG + 1)) == 15


def test_alone_the_leader_may_go_to_its_own_end() -> None:
    assert allowed(isr=(1,)) == 20


def test_a_member_of_which_nothing_is_known_allows_nothing() -> None:
    assert allowed(follower(2, leo=-1)) == -1


REPLICAS = st.lists(
    st.builds(
        follower,
        broker=st.integers(2, 6),
        leo=st.integers(-1, 25),
        caught_up_ms_ago=st.sampled_from([0, LAG - 1, LAG, LAG + 1, 5 * LAG]),
    ),
    unique_by=lambda replica: replica.broker,
    max_size=5,
)


@properties
@given(REPLICAS, st.sets(st.integers(2, 6)))
def test_the_rule_is_the_smallest_leo_of_the_leader_the_isr_and_the_caught_up(
    replicas: list[Replica], others: set[int]
) -> None:
    isr = (1, *sorted(others))
    counted = [
        r.log_end_offset
        for r in replicas
        if r.broker in others or NOW - r.last_caught_up_time_ms <= LAG
    ]
    assert allowed(*replicas, isr=isr) == min([20, *counted])


@properties
@given(REPLICAS, st.sets(st.integers(2, 6)))
def test_who_shrinks_away_never_lowers_what_is_allowed(
    replicas: list[Replica], others: set[int]
) -> None:
    isr = (1, *sorted(others))
    out = [r.broker for r in replicas if is_follower_out_of_sync(r, 20, NOW, LAG)]
    smaller = tuple(b for b in isr if b not in out)
    assert allowed(*replicas, isr=smaller) >= allowed(*replicas, isr=isr)
