"""The judge: what it must notice, what it must let pass, and what it says about it."""

import json
import pickle
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emulator.conformance.compare import Reference, Verdict, conclude, judge
from emulator.conformance.criteria import DELAYS, StateWrite
from emulator.conformance.recording import ProduceResult, Recording, read_recording
from tests.conformance.alterations import ALTERATIONS, IGNORED, Alteration
from tests.unit.conformance.failure_free import FAILURE_FREE, FOLDER

NAMES = sorted(path.name for path in FOLDER.iterdir())
BY_NAME = {alteration.name: alteration for alteration in ALTERATIONS}


@cache
def recorded(name: str) -> Recording:
    return read_recording(FOLDER / name)


def altered(name: str, alteration: str, nth: int = 0) -> Recording:
    return BY_NAME[alteration].altered(recorded(name), nth)


def missed_by(verdict: Verdict) -> set[int]:
    points = {point for point, ok in verdict.points.items() if not ok}
    return points if all(timing.inside for timing in verdict.timings) else points | {DELAYS}


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_matches_itself(name: str) -> None:
    verdict = judge(recorded(name), [recorded(name)])
    assert verdict.matched
    assert verdict.first_difference is None
    assert verdict.agreeing_by_point == dict.fromkeys(range(1, 8), 1)


@pytest.mark.parametrize("alteration", ALTERATIONS, ids=lambda alteration: alteration.name)
@given(name=st.sampled_from(FAILURE_FREE), nth=st.integers(0, 9999))
@settings(derandomize=True, deadline=None, max_examples=5)
def test_one_altered_fact_is_noticed(alteration: Alteration, name: str, nth: int) -> None:
    real = recorded(name)
    assume(alteration.sites(real))
    other = alteration.altered(real, nth)
    for verdict in (judge(real, [other]), judge(other, [real])):
        assert not verdict.matched
        assert missed_by(verdict) & alteration.points


@pytest.mark.parametrize("alteration", IGNORED[:2], ids=lambda alteration: alteration.name)
@given(name=st.sampled_from(NAMES), nth=st.integers(0, 9999))
@settings(derandomize=True, deadline=None, max_examples=5)
def test_a_repeat_meant_to_be_ignored_is_ignored(
    alteration: Alteration, name: str, nth: int
) -> None:
    real = recorded(name)
    assume(alteration.sites(real))
    other = alteration.altered(real, nth)
    assert judge(real, [other]).matched
    assert judge(other, [real]).matched


def test_one_agreeing_run_among_many_is_enough() -> None:
    real, wrong = recorded("flapping"), altered("flapping", "a lost state write")
    verdict = judge(real, [wrong, real, wrong])
    assert verdict.matched
    assert (verdict.seeds, verdict.seeds_agreeing) == (3, 1)
    assert verdict.agreeing == (real.name,)
    assert verdict.agreeing_by_point[1] == 1
    assert verdict.agreeing_by_point[4] == 3


def test_what_was_agreed_on_must_be_right_in_one_run_together() -> None:
    wrong_state = altered("flapping", "a lost state write")
    wrong_metadata = altered("flapping", "a lost control request")
    verdict = judge(recorded("flapping"), [wrong_state, wrong_metadata])
    assert not verdict.matched
    assert verdict.seeds_agreeing == 0


def test_each_race_may_be_right_in_another_of_the_agreeing_runs() -> None:
    one = altered("flapping", "a request with another version")
    other = altered("flapping", "a request with another watch flag")
    assert not judge(recorded("flapping"), [one]).matched
    assert judge(recorded("flapping"), [one, other]).matched


def test_a_race_won_only_by_a_run_that_does_not_agree_does_not_count() -> None:
    agreeing = altered("flapping", "a request with another version")
    right_there = altered("flapping", "a lost control request")
    verdict = judge(recorded("flapping"), [agreeing, right_there])
    assert not verdict.points[6]
    assert verdict.points[4]


def test_the_nearest_run_says_what_is_missing() -> None:
    near = replace(altered("flapping", "a lost state write"), name="near")
    far = replace(recorded("flapping"), events=[], name="far")
    verdict = judge(recorded("flapping"), [far, near])
    assert verdict.nearest_run == "near"
    assert {d.point for d in verdict.differences} == {1}
    assert {point for point, d in verdict.nearest_differences.items() if d} == {1}


def test_of_runs_that_agree_the_nearest_lacks_least() -> None:
    lacking = replace(altered("flapping", "a request with another version"), name="lacking")
    whole = replace(recorded("flapping"), name="whole")
    for runs in ([lacking, whole], [whole, lacking]):
        verdict = judge(recorded("flapping"), runs)
        assert verdict.nearest_run == "whole"
        assert not any(verdict.nearest_differences.values())


def test_a_difference_shows_both_sides_and_what_was_alike_before() -> None:
    verdict = judge(recorded("flapping"), [altered("flapping", "a lost state write", nth=4)])
    difference = verdict.first_difference
    assert difference is not None
    assert (difference.point, difference.key, difference.entry) == (1, "orders-0", 5)
    assert [version_of(entry) for entry in difference.before] == [2, 3, 4]
    assert [version_of(entry) for entry in difference.real] == [5, 6, 7]
    assert [version_of(entry) for entry in difference.run] == [6, 7, 8]


def version_of(entry: object) -> int:
    assert isinstance(entry, StateWrite)
    return entry.version


def notified_later(name: str, ms: int) -> Recording:
    real = recorded(name)
    late = [
        {**fact, "t": fact["t"] + ms}
        if "/isr_change_notification/" in fact.get("path", "") and fact["kind"] == "zookeeper"
        else fact
        for fact in real.events
    ]
    return replace(real, events=late)


def test_a_delay_may_lie_150_ms_beyond_the_runs_and_no_more() -> None:
    real = recorded("idle-topic")
    for ms, inside in ((150, True), (-150, True), (151, False), (-151, False)):
        assert judge(real, [notified_later("idle-topic", ms)]).matched is inside
    assert judge(real, [notified_later("idle-topic", 400)], tolerance_ms=400).matched


def test_a_delay_inside_the_span_of_the_runs_is_right() -> None:
    real = recorded("idle-topic")
    runs = [notified_later("idle-topic", ms) for ms in (-900, -800, 700)]
    verdict = judge(real, runs)
    assert verdict.matched
    (timing,) = (t for t in verdict.timings if "notification" in t.what)
    assert timing.min_ms == timing.recorded_ms - 900
    assert timing.p50_ms == timing.recorded_ms - 800
    assert timing.max_ms == timing.recorded_ms + 700


def test_a_run_says_what_it_wants_beside_it_to_span_the_delays() -> None:
    reference = Reference(recorded("idle-topic"))

    def wanted(run: Recording) -> list[str]:
        return [name.rpartition(": ")[2] for name in reference.delay_gaps(reference.examine(run))]

    assert wanted(notified_later("idle-topic", 150)) == []
    assert set(wanted(notified_later("idle-topic", 151))) == {"none so short"}
    assert set(wanted(notified_later("idle-topic", -151))) == {"none so long"}
    without = wanted(replace(recorded("idle-topic"), events=[]))
    assert without[:2] == ["none so short", "none so long"]


def test_from_twenty_agreeing_runs_on_they_alone_say_how_long_a_delay_may_be() -> None:
    real = recorded("idle-topic")
    late = [notified_later("idle-topic", 500)]
    early = BY_NAME["a lost control request"].altered(notified_later("idle-topic", -500), 0)
    assert judge(real, late * 19 + [early]).matched
    assert not judge(real, late * 20 + [early]).matched


def test_a_delay_that_no_run_has_is_outside() -> None:
    verdict = judge(recorded("flapping"), [replace(recorded("flapping"), events=[])])
    timing = verdict.timings[0]
    assert (timing.min_ms, timing.p50_ms, timing.max_ms) == (None, None, None)
    assert not timing.inside


def produced(*times: int, rate: int = 1, result: str = "ok") -> Recording:
    produce = {"t": 0, "kind": "stimulus", "do": "produce", "topic": "o", "partitions": [0]}
    results = [ProduceResult(t, "o", "all", 0, result) for t in times]
    header = {"kind": "settings", "kafka": "2.6.3"}
    return Recording(header, [{**produce, "rate": rate, "acks": "all"}], results)


def test_a_stall_may_be_longer_or_shorter_by_the_producers_period_too() -> None:
    assert judge(produced(0, 3000), [produced(0, 4150)]).matched
    assert not judge(produced(0, 3000), [produced(0, 4151)]).matched
    assert not judge(produced(0, 3000, rate=10), [produced(0, 4150)]).matched


def test_the_number_of_stalls_counts() -> None:
    assert not judge(produced(0, 3000), [produced(0, 1500, 3000)]).points[7]


def test_acknowledged_records_may_differ_by_twenty_or_five_percent() -> None:
    for real, run, same in ((30, 50, True), (30, 51, False), (1000, 950, True), (1000, 949, False)):
        verdict = judge(produced(*range(real)), [produced(*range(run))])
        assert verdict.points[7] is same


def test_another_kind_of_result_counts_however_rare() -> None:
    real = produced(*range(1000))
    rare = replace(real, results=[*real.results, *produced(5, result="MSG_TIMED_OUT").results])
    assert not judge(real, [rare]).points[7]


def test_examined_runs_may_come_from_other_processes() -> None:
    real = recorded("flapping")
    runs = [real, altered("flapping", "a lost request"), altered("flapping", "a lost state write")]
    reference = Reference(real)
    examined = [pickle.loads(pickle.dumps(reference.examine(run))) for run in runs]
    assert conclude(reference, examined) == judge(real, runs)


def test_the_verdict_as_json_has_the_fields_that_were_promised() -> None:
    verdict = judge(recorded("flapping"), [altered("flapping", "a lost request", nth=9)])
    told = json.loads(json.dumps(verdict.as_json()))
    assert list(told) == [
        "recording", "matched", "seeds", "seeds_agreeing", "agreeing", "points", "first_difference",
        "timings",
    ]  # fmt: skip
    assert list(told["points"]) == ["1", "2", "3", "4", "5", "6", "7"]
    assert set(told["first_difference"]) == {"point", "key", "entry", "before", "real", "run"}
    assert list(told["timings"][0]) == [
        "what", "recorded_ms", "min_ms", "p50_ms", "max_ms", "inside",
    ]  # fmt: skip
