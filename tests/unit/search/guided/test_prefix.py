"""A run that is still going contradicts the recording as early as it can be known."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emulator.conformance.recording import Fact, Recording, read_recording
from emulator.search.guided.prefix import (
    GRACE_MS,
    GRACE_OF_CREATION_MS,
    HARD,
    SOFT,
    Disagreement,
    PrefixJudgement,
    RealCourse,
)
from tests.conformance.alterations import ALTERATIONS, Alteration
from tests.unit.conformance.failure_free import FAILURE_FREE, FOLDER

NAMES = sorted(path.name for path in FOLDER.iterdir())
UNDATED = [a for a in ALTERATIONS if a.points <= {*HARD, 2, 6} and "doubled" not in a.name]


def prefix_disagreement(
    real: RealCourse, run: Recording, until_ms: int, points: tuple[int, ...] = HARD
) -> Disagreement | None:
    """Judge a whole run at once."""
    prefix = PrefixJudgement(real)
    prefix.run.grow(run)
    return prefix.disagreement(until_ms, points)


@cache
def recorded(name: str) -> Recording:
    return read_recording(FOLDER / name)


@cache
def course(name: str) -> RealCourse:
    return RealCourse(recorded(name))


def so_far(recording: Recording, until_ms: int) -> Recording:
    return replace(recording, events=[e for e in recording.events if e["t"] < until_ms])


@given(name=st.sampled_from(NAMES), until_ms=st.integers(-9000, 120_000))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_the_beginning_of_the_recording_itself_never_disagrees(name: str, until_ms: int) -> None:
    begun = so_far(recorded(name), until_ms)
    assert prefix_disagreement(course(name), begun, until_ms) is None
    assert prefix_disagreement(course(name), begun, until_ms, SOFT) is None


@given(name=st.sampled_from(NAMES), until_ms=st.integers(-9000, 120_000))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_what_a_run_did_after_the_moment_does_not_matter(name: str, until_ms: int) -> None:
    wrong_later = [{**e, "broker": 9} if e["t"] >= until_ms else e for e in recorded(name).events]
    run = replace(recorded(name), events=wrong_later)
    assert prefix_disagreement(course(name), run, until_ms) is None


@pytest.mark.parametrize("alteration", UNDATED, ids=lambda alteration: alteration.name)
@given(name=st.sampled_from(FAILURE_FREE), nth=st.integers(0, 999))
@settings(derandomize=True, deadline=None, max_examples=8)
def test_an_altered_fact_is_found_when_it_happens_and_not_before(
    alteration: Alteration, name: str, nth: int
) -> None:
    sites = alteration.sites(recorded(name))
    assume(sites)
    at_ms = recorded(name).events[sites[nth % len(sites)]]["t"]
    run = alteration.altered(recorded(name), nth)
    points = HARD if alteration.points <= {*HARD} else SOFT
    assert prefix_disagreement(course(name), so_far(run, at_ms), at_ms, points) is None
    until_ms = at_ms + GRACE_MS + 1
    found = prefix_disagreement(course(name), so_far(run, until_ms), until_ms, points)
    assert found is not None
    assert {found.point} == alteration.points
    # Repeated requests count once: where one of them is lost, the entry that differs may be an
    # earlier one of its lane.
    assert found.at_ms == at_ms if points == HARD else found.at_ms <= at_ms


def written(t: int, version: int, isr: str = "1,2") -> Fact:
    state = f'{{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[{isr}]}}'
    path = "/brokers/topics/o/partitions/0/state"
    head = {"t": t, "kind": "zookeeper", "broker": 1, "op": "setData"}
    return {**head, "path": path, "data": state, "version": version}


def history(*facts: Fact) -> Recording:
    return Recording({"kind": "settings", "kafka": "2.6.3"}, list(facts))


def between(real: Recording, run: Recording, until_ms: int) -> Disagreement | None:
    return prefix_disagreement(RealCourse(real), run, until_ms)


@pytest.mark.parametrize(("until_ms", "since"), [(1000, None), (1250, None), (1251, 1000)])
def test_what_only_one_side_has_so_far_is_a_disagreement_after_the_grace(
    until_ms: int, since: int | None
) -> None:
    early, late = (history(written(500, 1), written(at_ms, 2)) for at_ms in (1000, 9000))
    for real, run in ((early, late), (late, early)):
        found = between(real, so_far(run, until_ms), until_ms)
        assert (found.at_ms if found else None) == since


def test_what_comes_too_early_and_is_not_what_comes_next_is_wrong_at_once() -> None:
    run = history(written(500, 1), written(1000, 2))
    for real in (history(written(500, 1)), history(written(500, 1), written(1100, 3))):
        found = between(real, run, 1001)
        assert found is not None
        assert found.at_ms == 1000


def test_after_a_creation_the_grace_is_longer() -> None:
    real, run = history(written(500, 1)), history(written(3400, 1))
    prefix = PrefixJudgement(RealCourse(real))
    prefix.run.grow(so_far(run, 3400))
    assert prefix.disagreement(3400) is not None
    assert prefix.disagreement(3400, grace_ms=GRACE_OF_CREATION_MS) is None
    assert prefix.disagreement(3501, grace_ms=GRACE_OF_CREATION_MS) is not None


def test_the_side_that_lacks_an_entry_has_none_there() -> None:
    found = between(history(written(1000, 1)), history(), 2000)
    assert found is not None
    assert (found.point, found.key, found.run) == (1, "o-0", None)
    assert found.real is not None


def test_two_entries_that_differ_contradict_each_other_at_once() -> None:
    real, run = history(written(1000, 1)), history(written(1100, 1, isr="2,1"))
    assert between(real, run, 1100) is None
    found = between(real, run, 1101)
    assert found is not None
    assert found.at_ms == 1000


def test_the_same_thing_a_little_later_is_no_disagreement() -> None:
    real, run = history(written(1000, 1)), history(written(1240, 1))
    assert all(between(real, run, until_ms) is None for until_ms in range(900, 1600, 10))


def test_of_several_disagreements_the_earliest_is_told() -> None:
    election = {"t": 700, "kind": "zookeeper", "broker": 3, "op": "create", "path": "/controller"}
    found = between(history(written(1000, 1)), history(election), 5000)
    assert found is not None
    assert (found.at_ms, found.point, found.key) == (700, 3, "/controller")


def shrink(t: int) -> Fact:
    partition = {"topic": "o", "partition": 0}
    change = {"from_isr": [1, 2], "to_isr": [1]}
    return {"t": t, "kind": "shrink", "broker": 1, **partition, **change}


def expand(t: int) -> Fact:
    partition = {"topic": "o", "partition": 0}
    change = {"from_isr": [1], "to_isr": [1, 2]}
    return {"t": t, "kind": "expand", "broker": 1, **partition, **change}


def test_races_disagree_only_when_they_are_older_than_the_grace() -> None:
    course, run = RealCourse(history(shrink(1000))), history(expand(1000))
    assert prefix_disagreement(course, run, 1100) is None
    assert prefix_disagreement(course, run, 1250, SOFT) is None
    assert prefix_disagreement(course, run, 1251, SOFT) is not None


def test_a_retry_more_or_less_is_no_disagreement() -> None:
    course = RealCourse(history(shrink(1000), shrink(2000), shrink(3000), expand(4000)))
    run = history(shrink(1000), expand(4000))
    assert all(prefix_disagreement(course, run, t, SOFT) is None for t in range(900, 6000, 100))


def test_what_a_broker_wrote_before_it_was_stopped_gets_no_grace() -> None:
    real = recorded("shrink-expand")
    written = next(e for e in real.events if is_first_shrink(e))
    until_ms = written["t"] + 10
    lacking = replace(real, events=[e for e in so_far(real, until_ms).events if e is not written])
    prefix = PrefixJudgement(course("shrink-expand"))
    prefix.run.grow(lacking)
    others = {1, 2, 3} - {written["broker"]}
    assert prefix.disagreement(until_ms, HARD, others) is None
    missed = prefix.disagreement(until_ms, HARD, {written["broker"]})
    assert missed is not None
    assert (missed.at_ms, missed.point, missed.run) == (written["t"], 1, None)


def is_first_shrink(fact: Fact) -> bool:
    return fact["kind"] == "zookeeper" and fact["op"] == "setData" and fact["version"] == 1


def test_the_end_of_a_session_is_no_race_just_lost() -> None:
    """Its last ping decided when it ends: an earlier group must change."""
    real = recorded("leader-crash")
    ((closed_ms, broker),) = [(t.t, t.broker) for t in real.transactions if t.op == "closeSession"]
    tick_ms = 500
    moved = replace(
        real,
        events=sorted(
            (
                {**e, "t": e["t"] - tick_ms} if e.get("op") == "closeSession" else e
                for e in real.events
            ),
            key=lambda e: e["t"],
        ),
    )
    until_ms = closed_ms - tick_ms + GRACE_MS + 1
    wrong = prefix_disagreement(course("leader-crash"), moved, until_ms)
    assert wrong is not None
    assert (wrong.key, wrong.run_ms) == (f"session of broker {broker}", closed_ms - tick_ms)
    assert wrong.race_ms is None
    elsewhere = replace(wrong, key=f"broker {broker} controller")
    assert elsewhere.race_ms == wrong.run_ms
