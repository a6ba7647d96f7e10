"""Leader selection: the four strategies of spec §6.7, their ISRs, and replicas that are never
elected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.controller.leader_selection import (
    Elected,
    controlled_shutdown,
    offline,
    preferred,
    reassign,
)

properties = settings(derandomize=True, deadline=None)
BROKERS = st.integers(1, 5)
ASSIGNMENT = st.lists(BROKERS, unique=True, min_size=1)


# -- offline ---------------------------------------------------------------------------------------


def test_first_in_assignment_order_that_lives_and_is_in_the_isr_leads_the_living_isr() -> None:
    elected = offline([1, 2, 3], [3, 1, 2], {2, 3}, unclean_allowed=False)
    assert elected == Elected(2, (3, 2))


def test_without_a_living_isr_member_nobody_is_elected() -> None:
    assert offline([1, 2, 3], [1], {2, 3}, unclean_allowed=False) is None


def test_if_unclean_elections_are_allowed_the_first_that_lives_leads_alone() -> None:
    assert offline([1, 2, 3], [1], {2, 3}, unclean_allowed=True) == Elected(2, (2,), unclean=True)


def test_permission_for_unclean_elections_changes_nothing_while_a_clean_one_is_possible() -> None:
    assert offline([1, 2, 3], [3], {1, 2, 3}, unclean_allowed=True) == Elected(3, (3,))


def test_where_nobody_lives_nobody_is_elected() -> None:
    assert offline([1, 2], [1, 2], (), unclean_allowed=True) is None


@properties
@given(ASSIGNMENT, st.lists(BROKERS, unique=True), st.sets(BROKERS), st.booleans())
def test_an_offline_election_elects_a_living_replica_and_clean_ones_from_the_isr(
    assignment: list[int], isr: list[int], live: set[int], unclean: bool
) -> None:
    elected = offline(assignment, isr, live, unclean_allowed=unclean)
    candidates = [b for b in assignment if b in live and b in isr]
    if elected is None:
        assert not candidates
        assert not unclean or not live & set(assignment)
    elif elected.unclean:
        assert not candidates
        assert elected.isr == (elected.leader,)
        assert elected.leader in live & set(assignment)
    else:
        assert elected.leader == candidates[0]
        assert list(elected.isr) == [b for b in isr if b in live]


# -- the others ------------------------------------------------------------------------------------


def test_a_reassignment_moves_to_the_first_target_that_lives_and_is_in_sync() -> None:
    assert reassign([4, 5], [1, 5, 4], {1, 4, 5}) == Elected(4, (1, 5, 4))
    assert reassign([4, 5], [1, 5], {1, 4, 5}) == Elected(5, (1, 5))
    assert reassign([4, 5], [1, 4], {1, 5}) is None


@pytest.mark.parametrize(
    ("isr", "live", "elected"),
    [
        ([2, 1], {1, 2}, Elected(1, (2, 1))),
        ([2], {1, 2}, None),
        ([2, 1], {2}, None),
    ],
)
def test_the_preferred_replica_is_elected_only_if_it_lives_and_is_in_sync(
    isr: list[int], live: set[int], elected: Elected | None
) -> None:
    assert preferred([1, 2], isr, live) == elected


def test_a_shutdown_moves_to_the_first_in_sync_that_stays_and_takes_those_that_go_out() -> None:
    elected = controlled_shutdown([1, 2, 3], [1, 2, 3], {1, 2, 3}, {1, 2})
    assert elected == Elected(3, (3,))


def test_a_shutdown_of_the_last_in_sync_replica_elects_nobody() -> None:
    assert controlled_shutdown([1, 2], [1], {1, 2}, {1}) is None


@properties
@given(ASSIGNMENT, st.lists(BROKERS, unique=True), st.sets(BROKERS), st.sets(BROKERS))
def test_no_strategy_elects_from_outside_the_isr_or_who_is_gone(
    assignment: list[int], isr: list[int], live: set[int], stopping: set[int]
) -> None:
    found = {
        "reassign": reassign(assignment, isr, live),
        "preferred": preferred(assignment, isr, live),
        "shutdown": controlled_shutdown(assignment, isr, live, stopping),
    }
    for name, elected in found.items():
        if elected is not None:
            assert elected.leader in isr and elected.leader in live, name
            assert elected.leader in elected.isr, name
            assert not elected.unclean, name
    shutdown = found["shutdown"]
    if shutdown is not None:
        assert not stopping & {shutdown.leader, *shutdown.isr}
