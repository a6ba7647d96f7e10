"""Several searches side by side: how many draws each gets, and what is kept of what they found."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.conformance.compare import Difference, Examined, Reference, conclude
from emulator.conformance.criteria import DELAYS
from emulator.conformance.recording import read_recording
from emulator.search.guided.restarts import luby, needed
from emulator.search.guided.search import AgreeingRun, still_missing

FLAPPING = Path(__file__).parents[3] / "recordings/kafka-2.6.3/flapping"
PARTS = [(5, "a"), (5, "b"), (6, "c"), (7, "d")]


@cache
def reference() -> Reference:
    return Reference(read_recording(FLAPPING))


def found(*parts: tuple[int, str], late_ms: int = 0) -> AgreeingRun:
    """A run that agrees but is not equal in these parts."""
    differences = {
        point: tuple(Difference(of, key, 0, (), (), ()) for of, key in parts if of == point)
        for point in range(1, 8)
    }
    delays = {what: ms + late_ms for what, ms in reference().delays.items()}
    examined = Examined("seed 1", differences, delays)
    return AgreeingRun(1, {}, examined, reference().lacking(examined))


def missing(runs: list[AgreeingRun]) -> set[tuple[int, str]]:
    """And the verdict on these runs is the same."""
    parts = still_missing(None, runs)
    verdict = conclude(reference(), [run.examined for run in runs])
    assert verdict.matched == (not parts)
    outside = {timing.what for timing in verdict.timings if not timing.inside}
    assert {gap.rpartition(": ")[0] for point, gap in parts if point == DELAYS} == outside
    return set(parts)


def test_mostly_short_searches_now_and_then_a_longer_one() -> None:
    assert [luby(n) for n in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def test_what_no_run_is_equal_in_is_missing_and_a_delay_that_none_comes_near() -> None:
    a, b, c, _ = PARTS
    assert missing([found(a, b), found(b, c)]) == {b}
    late = missing([found(late_ms=400), found(late_ms=900)])
    assert {part for part, _ in late} == {DELAYS}
    assert missing([found(late_ms=400), found(late_ms=-100)]) == set()


def test_of_runs_that_are_a_match_together_only_those_are_kept_that_it_takes() -> None:
    a, b, c, d = PARTS
    one, other = found(a, b), found(c)
    assert needed([found(a, b, c), one, found(b, c, d), other]) == [one, other]
    assert needed([found(a), found(), found(b)]) == [found()]
    assert needed([]) == []


@given(runs=st.lists(st.sets(st.sampled_from(PARTS)), min_size=1, max_size=6))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_who_goes_takes_nothing_along_and_whoever_stays_is_needed(
    runs: list[set[tuple[int, str]]],
) -> None:
    of = [found(*sorted(parts)) for parts in runs]
    kept = needed(of)
    assert missing(kept) == missing(of)
    for run in kept if len(kept) > 1 else []:
        assert missing([one for one in kept if one is not run]) > missing(of)
