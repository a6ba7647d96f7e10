"""Whole clusters explored: schedules repeat, searches end, and what fails is made small."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from emulator.kernel.rng import Stream
from emulator.runs.forks import in_child
from emulator.runs.play import Run
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.schedules.coverage_goals import COVERAGE_GOALS, never
from emulator.search.schedules.labels import UNDECLARED
from emulator.search.schedules.schedule import Candidate, Choice, Injection, Schedule, schedule_of
from emulator.search.schedules.search import ExploreTally, SearchOptions, as_schedule, search
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.strategies import (
    DefaultOrder,
    PriorityOrder,
    RandomOrder,
    WrittenOrder,
)
from emulator.search.schedules.warm_cluster import (
    FOREVER_US,
    ScheduleResult,
    WarmCluster,
    read_injection,
)
from emulator.search.schedules.warm_pool import WarmPool
from emulator.trace.difference import digest_of
from emulator.trace.events import ActionApplied
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld

STANDS_STILL = """\
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 3000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, from: 2s, until: 6s}]
faults: [{at: 3s, pause: {broker: 3}, for: 5s}]
run: 12s
"""
IDLE = """\
guards: {stay-at-log-end: off}
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 9000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, from: 2s, until: 3s}]
run: 9s
"""
STANDS = (Injection(0, "pause 2", "3s"), Injection(0, "pause 3", "10ms"))


def schedule(profile: str = "2.6", **more: Any) -> Schedule:
    scenario = loads(STANDS_STILL, "stands-still", chosen=VersionOptions(profile))
    return schedule_of(scenario, 1, **{"begins": "3s", "steps": 20, **more})


def idle(**more: Any) -> Schedule:
    """A replica with every record stays in the ISR, however long it is paused; not here
    (KAFKA-7152)."""
    return schedule_of(loads(IDLE, "idle"), 1, **{"begins": "4s", "steps": 8, **more})


@pytest.fixture(scope="module")
def warm() -> WarmCluster:
    """A warm cluster; users must fork before they play on it."""
    return WarmCluster(schedule())


def played(warm: WarmCluster, strategy: DefaultOrder, **how: Any) -> ScheduleResult:
    return in_child(lambda: warm.play(strategy, **how))


def test_where_nothing_is_chosen_every_event_is_as_in_a_plain_run(warm: WarmCluster) -> None:
    sink = Sink()
    world = SimulatedWorld(warm.scenario, 1, sink)
    Run(world).play()
    plain = digest_of(sink.events)
    world.close()
    forever = played(warm, DefaultOrder(10**9), digest=True)
    assert len(forever.offered) > 100
    assert max(forever.offered) > 2
    assert forever.trace == plain
    assert played(warm, DefaultOrder(20), digest=True).trace == plain


@pytest.mark.parametrize("kind", [RandomOrder, PriorityOrder])
def test_what_was_drawn_is_repeated_from_its_choices_to_the_last_event(
    warm: WarmCluster, kind: type[RandomOrder | PriorityOrder]
) -> None:
    menu = (read_injection("pause 2 for 1s", warm.schedule),)
    drawn = played(warm, kind(20, Stream(7), menu, 2), digest=True)
    assert drawn.choices
    assert drawn.faults
    again = WrittenOrder(20, drawn, exactly=True)
    assert played(warm, again, digest=True) == drawn


def test_every_callback_that_can_be_next_declares_its_label(warm: WarmCluster) -> None:
    """One that does not would be found again under no name, and two of them be taken for one."""
    strategy = RandomOrder(10**9, Stream(7), (), 0)
    options = {each for step in played(warm, strategy, states=True).options for each in step}
    assert len(options) > 30
    assert {each for each in options if f": {UNDECLARED}" in each} == set()


def test_a_schedule_of_another_program_is_told_where_it_departs(warm: WarmCluster) -> None:
    choices = (Choice(2, 1, 2, "broker-9 somebody: else"),)
    with pytest.raises(UserError, match="step 2: the schedule has 'broker-9 somebody: else'"):
        played(warm, WrittenOrder(20, Candidate(choices), exactly=True))
    lenient = played(warm, WrittenOrder(20, Candidate(choices), exactly=False))
    assert lenient.choices == ()


def test_a_small_scope_is_searched_completely_and_states_met_before_are_not_gone_on_from(
    warm: WarmCluster,
) -> None:
    small = WarmCluster(schedule(steps=4))
    tally = ExploreTally()
    lengths = [
        p.length
        for p in search(
            small, SearchOptions(strategy="exhaustive", schedules=400, then_us=0), tally
        )
    ]
    assert tally.complete
    assert lengths == sorted(lengths), "breadth first"
    assert lengths[0] == 0
    assert len(tally.states) > 4
    every = 1
    for options in played(small, DefaultOrder(4), then_us=0).offered:
        every *= options
    assert tally.schedules < every * 2
    assert tally.steps == 4 * tally.schedules


def test_a_search_that_is_cut_short_says_so(warm: WarmCluster) -> None:
    tally = ExploreTally()
    for _ in search(warm, SearchOptions(strategy="exhaustive", schedules=5, then_us=0), tally):
        pass
    assert tally.complete is False
    assert tally.schedules == 5


def test_the_shrunk_schedule_is_hardly_longer_than_the_shortest_there_is() -> None:
    warm, least = WarmCluster(idle()), ExploreTally()
    for _ in search(
        warm, SearchOptions(strategy="exhaustive", schedules=400, menu=STANDS, faults_max=2), least
    ):
        pass
    drawn = ExploreTally()
    for _ in search(
        warm, SearchOptions(schedules=20, menu=STANDS, faults_max=2, keep_going=True), drawn
    ):
        pass
    failing = max(drawn.failing, key=lambda one: one.length)
    small = Shrinking(as_schedule(warm, failing)).smallest()
    assert failing.length > 3 * least.failing[0].length
    assert small.length <= 1.5 * least.failing[0].length


def test_what_is_made_small_fails_in_the_same_way_and_repeats_exactly() -> None:
    warm, tally = WarmCluster(idle()), ExploreTally()
    for _ in search(warm, SearchOptions(schedules=20, menu=STANDS, faults_max=2), tally):
        pass
    failing = as_schedule(warm, tally.failing[0])
    small = Shrinking(failing).smallest()
    assert small.violation is not None
    assert failing.violation is not None
    assert small.violation.invariant == failing.violation.invariant
    assert [fault.do for fault in small.faults] == ["pause 2"]
    again = in_child(lambda: WarmCluster(small).play_as_written())
    assert (again.trace, again.events) == (small.trace, small.events)


def test_what_does_not_fail_cannot_be_made_smaller() -> None:
    with pytest.raises(UserError, match="does not fail"):
        Shrinking(idle(steps=0))


def test_faults_strike_where_they_are_put_and_are_undone(warm: WarmCluster) -> None:
    injection = msgspec.structs.replace(read_injection("pause 2 for 700ms", warm.schedule), step=5)
    seen = list[tuple[str, int]]()

    def play() -> list[tuple[str, int]]:
        result = warm.play(DefaultOrder(20, [injection]))
        assert result.faults == (injection,)
        seen.extend(
            (event.do, event.t)
            for event in warm.events
            if isinstance(event, ActionApplied) and event.broker == 2
        )
        return seen

    (paused, at_us), (resumed, until_us) = in_child(play)
    assert (paused, resumed) == ("pause", "resume")
    assert until_us - at_us == 700_000


def test_what_is_seen_is_told_of_the_explored_part_alone(warm: WarmCluster) -> None:
    whole = played(warm, DefaultOrder(20))
    nothing = played(warm, DefaultOrder(1), then_us=0)
    assert "ISR changed" in whole.seen
    assert not nothing.seen
    assert set(never(whole.seen)) == set(COVERAGE_GOALS) - whole.seen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pause 9", "--fault pause 9"),
        ("paus 2", "there is no paus"),
        ("pause 2 for ever", "is not a duration"),
        ("expire_session 2 for 2s", "nothing undoes expire_session"),
    ],
)
def test_a_fault_that_cannot_be_is_one_line(warm: WarmCluster, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        read_injection(text, warm.schedule)
    assert "\n" not in str(error.value)


def test_two_plays_of_one_stage_are_alike(warm: WarmCluster) -> None:
    play = partial(played, warm, RandomOrder(20, Stream(3), (), 0), states=True, digest=True)
    assert play() == play()


def test_schedules_side_by_side_in_one_fork_come_out_as_each_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If forks are expensive, another warm cluster is added after each child: 1 + 2 + 3
    schedules."""
    monkeypatch.setattr("emulator.search.schedules.warm_pool.FORK_S", 100)
    pool, menu = WarmPool(WarmCluster(schedule())), STANDS[:1]

    def play(warm: WarmCluster, seed: int) -> ScheduleResult:
        return warm.play(RandomOrder(20, Stream(seed), menu, 1), states=True, digest=True)

    together = dict(pool.play(range(6), play, 1))
    assert len(pool.all) == 4
    alone = [in_child(partial(play, pool.all[0], seed)) for seed in range(6)]
    assert [together[seed] for seed in range(6)] == alone
    assert len({one.trace for one in alone}) == 6


def test_another_stage_is_made_only_where_forks_have_cost_as_much(warm: WarmCluster) -> None:
    pool = WarmPool(warm)
    for _ in pool.play(range(2), lambda one, _: one.play(DefaultOrder(1), then_us=0), 1):
        pass
    assert pool.all == [warm]


def test_a_schedule_that_is_cut_behind_its_last_step_is_a_beginning_of_the_whole() -> None:
    """No action comes early."""
    warm = WarmCluster(schedule(begins="4s", steps=10))

    def traced(then_us: int) -> list[str]:
        warm.play(RandomOrder(10, Stream(1), (), 0), then_us=then_us)
        return [repr(event) for event in warm.events]

    whole = in_child(lambda: traced(FOREVER_US))
    for then_us in (0, 500_000, 3_000_000):
        beginning = in_child(partial(traced, then_us))
        assert whole[: len(beginning)] == beginning
        assert len(beginning) < len(whole)
