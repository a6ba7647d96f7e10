"""A cluster played by hand: only actions count, not observations; undo leaves no trace; and the
saved scenario gives the same run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.runs.by_hand import ActionFailed, ManualRun
from emulator.runs.play import PlayOptions, play
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.life import Kill, Start
from emulator.scenario.actions.link import CutLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.load import loads
from emulator.scenario.written import write_scenario
from emulator.trace.sink import Sink

SCENARIO = """\
cluster: {first: 3, config: {replica.lag.time.max.ms: 1000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 10, from: 1s, until: 3s}]
faults: [{at: 1s, kill: {broker: 1}}]
run: 4s
"""
SECOND = 1_000_000
SEED = 11


@pytest.fixture
def hand() -> Iterator[ManualRun]:
    made = ManualRun(loads(SCENARIO, "tried"), SEED)
    yield made
    made.close()


def test_what_the_scenario_does_to_its_cluster_is_left_out(hand: ManualRun) -> None:
    hand.let(4 * SECOND)
    assert [e.do for e in hand.events if e.kind == "action_applied"] == [
        "up",
        "create_topic",
        "produce",
        "produce_stop",
    ]


def test_how_time_is_cut_into_pieces_changes_nothing(hand: ManualRun) -> None:
    hand.let(2 * SECOND)
    hand.do(Pause(2))
    hand.let(3 * SECOND)
    other = ManualRun(loads(SCENARIO, "tried"), SEED)
    for _ in range(8):
        other.let(SECOND // 4, lambda now_us: None)
    other.do(Pause(2))
    for _ in range(30):
        other.let(SECOND // 10)
    assert list(other.events) == list(hand.events)
    other.close()


def test_undo_is_as_if_it_had_not_been(hand: ManualRun) -> None:
    hand.let(SECOND)
    hand.do(Pause(2))
    before = list(hand.events)
    hand.let(2 * SECOND)
    hand.do(Kill(1))
    undone = [hand.undo(), hand.undo()]
    assert [act.actions for act in undone if act is not None] == [(Kill(1),), ()]
    assert list(hand.events) == before
    assert hand.now_us == SECOND
    hand.undo()
    hand.undo()
    assert hand.undo() is None
    assert (hand.now_us, hand.acts) == (0, [])


def test_a_step_ends_with_what_was_wanted(hand: ManualRun) -> None:
    hand.let(SECOND)
    hand.do(Pause(2))
    found = hand.step(lambda events: any(e.kind == "isr_update_started" for e in events))
    assert found
    assert [e.kind for e in hand.events].count("isr_update_started") == 1
    assert hand.events[-1].t >= hand.up_us + hand.now_us - 1_000
    assert not hand.step(lambda events: False)


def test_what_cannot_be_done_has_not_been(hand: ManualRun) -> None:
    hand.let(SECOND)
    before = list(hand.events)
    with pytest.raises(ActionFailed, match="broker 1 runs already"):
        hand.do(Start(1))
    assert list(hand.events) == before
    assert len(hand.acts) == 1
    hand.do(Kill(1))
    hand.let(25 * SECOND)
    hand.do(Start(1))
    hand.let(5 * SECOND)
    assert [e.broker for e in hand.events if e.kind == "broker_started"] == [3, 1, 2, 1]


def test_what_stands_is_what_nothing_has_undone(hand: ManualRun) -> None:
    hand.do(Pause(2), CutLink(1, 3))
    hand.do(Kill(1))
    assert hand.standing == [Pause(2), CutLink(1, 3), Kill(1)]
    hand.do(Resume(2))
    hand.do(HealLink(1, 3))
    assert hand.standing == [Kill(1)]
    hand.undo()
    assert hand.standing == [CutLink(1, 3), Kill(1)]


ACTS = st.one_of(
    st.integers(1, 3 * SECOND),
    st.sampled_from([2, 3]).map(Pause),
    st.sampled_from([2, 3]).map(Resume),
    st.just(CutLink(1, "zookeeper")),
    st.just(HealLink(1, "zookeeper")),
    st.integers(1, 5).map(lambda records: Send("orders", (0,), records)),
)


@given(st.lists(ACTS, max_size=8))
@settings(max_examples=15, deadline=None)
def test_what_is_saved_is_the_same_run(acts: list[int | Action]) -> None:
    """Its trace is the beginning of the one that `isr run` has of it."""
    loaded = loads(SCENARIO, "tried")
    hand = ManualRun(loaded, SEED)
    for act in acts:
        if isinstance(act, int):
            hand.let(act)
        else:
            hand.do(act)
    hand.let(SECOND)
    text = write_scenario(loaded, hand.steps, hand.now_us, settings={})
    sink = Sink()
    play(loads(text, "tried"), PlayOptions(seed=SEED), sink)
    assert sink.events[: len(hand.events)] == list(hand.events)
    hand.close()
