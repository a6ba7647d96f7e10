"""Asynchronous ISR updates, searched completely with the rules that brokers and the controller run,
beside the published model."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from emulator.kafka.broker.isr_state import CommittedIsr, PendingExpandIsr
from emulator.kafka.profiles.base import profiles
from emulator.kernel.rng import Stream
from emulator.search.async_isr import published
from emulator.search.async_isr.published import NIL, Published
from emulator.search.async_isr.search import Explorer, Result, Seen, State
from emulator.search.async_isr.steps import Leader, Scope, Steps
from zk.client.codec import LeaderAndIsr

SMALL, LARGER = Scope(3, 2, 1), Scope(3, 3, 1)
MAXIMAL_OFF = {"maximal-isr": False}


def steps_of(
    profile: str = "2.7", scope: Scope = SMALL, guards: Mapping[str, bool] | None = None
) -> Steps:
    return Steps(scope, profiles()[profile].altered(guards or {}, ""))


def explored(
    profile: str = "2.7", scope: Scope = SMALL, guards: Mapping[str, bool] | None = None
) -> Result:
    return Explorer(steps_of(profile, scope, guards)).explore()


class OneLeaves(Steps):
    """Like the published model: a proposal removes one replica at a time."""

    def _out_of_sync(self, leader: Leader, late: tuple[int, ...]) -> tuple[int, ...]:
        out = super()._out_of_sync(leader, late)
        return out if len(out) == 1 else ()


def as_published(seen: Seen) -> Published:
    """One of our states in the variables of the published model."""
    leader, cached = seen.leader, seen.cached
    state = leader.isr_state
    pending = () if isinstance(state, CommittedIsr) else state.proposed
    said = [a.answer for a in seen.answers if isinstance(a.answer, LeaderAndIsr)]
    return Published(
        bits(cached.isr),
        cached.zk_version,
        bits(state.isr),
        leader.zk_version,
        bits(pending),
        leader.zk_version if pending else NIL,
        (leader.log_end, *leader.offsets),
        frozenset((bits(r.desired.isr), r.desired.zk_version) for r in seen.requests),
        frozenset((bits(s.isr), s.zk_version) for s in [*said, *seen.updates]),
    )


def bits(isr: Collection[int]) -> int:
    return sum(1 << (broker - 1) for broker in isr)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["2.7", "2.8", "3.3"])
def test_whoever_the_controller_might_elect_has_all_that_is_committed(profile: str) -> None:
    result = explored(profile, Scope())
    assert result.complete
    assert not result.counterexample
    assert result.states > 15_000


@pytest.mark.slow
def test_the_published_model_has_the_states_that_it_is_known_for() -> None:
    assert len(published.states(Scope(3, 4, 2))) == 134_008


def test_without_the_maximal_isr_a_joining_replica_may_lack_what_is_committed() -> None:
    result = explored(scope=Scope(), guards=MAXIMAL_OFF)
    assert result.counterexample == (
        "the controller takes broker 2 out: ISR [1, 3] at version 1, epoch 1",
        "the controller takes broker 3 out: ISR [1] at version 2, epoch 2",
        "the leader takes LeaderAndIsr ISR [1] at version 2, epoch 2",
        "the leader proposes that broker 2 join (version 2)",
        "the leader appends a record, high watermark 1",
        "the controller answers ISR [1, 2] at version 2 with ISR [1, 2] at version 3, epoch 2",
    )
    assert not result.complete


def test_the_counterexample_repeats_step_by_step_and_breaks_at_its_end() -> None:
    explorer = Explorer(steps_of(guards=MAXIMAL_OFF))
    state = explorer.first
    way = explorer.explore().counterexample
    for words in way:
        assert explorer.is_valid(state)
        state = dict(explorer.successors(state))[words]
    assert not explorer.is_valid(state)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["2.7", "3.3"])
def test_what_is_forgotten_changes_nothing_that_can_happen(profile: str) -> None:
    def halves(*, forgets: bool) -> set[tuple[Leader, LeaderAndIsr]]:
        explorer, found = Explorer(steps_of(profile, LARGER), forgets=forgets), set()

        def look(state: State) -> None:
            seen = explorer.seen(state)
            found.add((seen.leader, seen.cached))

        explorer.explore(look)
        return found

    assert halves(forgets=True) == halves(forgets=False)


@pytest.mark.parametrize("scope", [SMALL, LARGER])
def test_every_state_is_one_of_the_published_model(scope: Scope) -> None:
    steps = OneLeaves(scope, profiles()["2.7"])
    explorer, found = Explorer(steps, forgets=False), set[Published]()
    explorer.explore(lambda state: found.add(as_published(explorer.seen(state))))
    known = published.states(scope)
    assert found < known


def test_the_product_lets_two_leave_at_once_which_the_published_model_does_not() -> None:
    explorer, found = Explorer(steps_of(), forgets=False), set[Published]()
    explorer.explore(lambda state: found.add(as_published(explorer.seen(state))))
    beyond = found - published.states(SMALL)
    assert beyond
    alone = bits((1,))
    assert all(alone in {isr for isr, _ in state.requests} for state in beyond)


def test_random_ways_find_it_with_the_guard_off_and_never_with_it() -> None:
    def broken(guards: Mapping[str, bool]) -> int:
        explorer, stream = Explorer(steps_of(scope=Scope(), guards=guards)), Stream(1)
        return sum(explorer.random_path(stream, 20) is not None for _ in range(300))

    assert broken(MAXIMAL_OFF) > 0
    assert broken({}) == 0


@pytest.mark.slow
def test_the_search_tells_how_far_it_is() -> None:
    told: list[int] = []
    Explorer(steps_of(scope=Scope())).explore(on_progress=told.append)
    assert told == sorted(told)
    assert told


def test_only_one_change_is_on_its_way_at_a_time() -> None:
    steps = steps_of()
    leader, _ = steps.first
    pending = leader._replace(isr_state=PendingExpandIsr((1, 2), 3))
    assert all(move.request is None for move in steps.moves(pending))


def test_nothing_is_answered_with_the_version_that_the_leader_has() -> None:
    """KAFKA-12751 needs such an answer: with its guard off no state comes and none goes."""
    without = explored(scope=LARGER, guards={"equal-version-is-success": False})
    assert (without.states, without.transitions) == (
        explored(scope=LARGER).states,
        explored(scope=LARGER).transitions,
    )
