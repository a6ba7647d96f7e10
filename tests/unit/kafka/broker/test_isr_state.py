"""The leader's ISR state machine and the controller's validation, as plain functions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.broker.isr_state import (
    CommittedIsr,
    IsrState,
    Outcome,
    PendingExpandIsr,
    PendingIsr,
    PendingShrinkIsr,
    take_answer,
)
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import Guard
from zk.client.codec import LeaderAndIsr

LEADER = 1
GUARDS = st.sampled_from([profiles()[name].guards for name in ("2.7", "2.8", "3.3")])
FOLLOWERS = st.lists(st.integers(2, 6), unique=True, max_size=4)
ISRS = FOLLOWERS.map(lambda followers: (LEADER, *followers))
EXPANSIONS = ISRS.map(lambda isr: PendingExpandIsr(isr, 7))
SHRINKS = st.tuples(ISRS, st.sets(st.integers(2, 6))).map(
    lambda drawn: PendingShrinkIsr(drawn[0], tuple(b for b in drawn[0] if b in drawn[1]))
)
PROPOSALS = st.one_of(EXPANSIONS, SHRINKS)
STATES = st.one_of(ISRS.map(CommittedIsr), PROPOSALS)
SUCCESSES = st.builds(LeaderAndIsr, st.just(LEADER), st.integers(3, 5), ISRS, st.integers(4, 7))
ANSWERS = st.one_of(SUCCESSES, st.sampled_from([e for e in Errors if e is not Errors.NONE]))
EPOCH, VERSION = 4, 5


@given(PROPOSALS)
def test_the_maximal_isr_holds_the_committed_and_the_proposed_one(proposed: PendingIsr) -> None:
    assert set(proposed.maximal_isr) == {*proposed.isr, *proposed.proposed}
    assert proposed.is_inflight


@given(ISRS)
def test_with_nothing_in_flight_the_maximal_isr_is_the_committed_one(isr: tuple[int, ...]) -> None:
    assert CommittedIsr(isr).maximal_isr == isr
    assert not CommittedIsr(isr).is_inflight


@given(SHRINKS)
def test_a_shrink_keeps_the_order_of_those_who_stay(proposed: PendingShrinkIsr) -> None:
    places = [proposed.isr.index(b) for b in proposed.proposed]
    assert places == sorted(places)
    assert not {*proposed.proposed} & {*proposed.out_of_sync}


@given(STATES, PROPOSALS, ANSWERS, GUARDS)
def test_an_answer_to_what_is_not_proposed_changes_nothing(
    state: IsrState, proposed: PendingIsr, answer: LeaderAndIsr | Errors, guards: frozenset[Guard]
) -> None:
    taken = take_answer(state, proposed, EPOCH, VERSION, answer, guards)
    if state != proposed:
        assert taken == (state, VERSION, Outcome.IGNORED)


@given(PROPOSALS, ANSWERS, GUARDS)
def test_versions_never_go_back_and_only_a_success_of_my_epoch_commits(
    proposed: PendingIsr, answer: LeaderAndIsr | Errors, guards: frozenset[Guard]
) -> None:
    taken = take_answer(proposed, proposed, EPOCH, VERSION, answer, guards)
    assert taken.zk_version >= VERSION
    good = (
        isinstance(answer, LeaderAndIsr)
        and answer.leader_epoch == EPOCH
        and answer.zk_version >= VERSION
    )
    assert (taken.outcome is Outcome.COMMITTED) == good
    if good:
        assert isinstance(answer, LeaderAndIsr)
        assert taken.state == CommittedIsr(answer.isr)
    elif taken.outcome is Outcome.ROLLED_BACK:
        assert taken.state == CommittedIsr(proposed.isr)
    else:
        assert taken.state == proposed
