"""A guided search finds what happened, honestly: its choices replay alone, within what is declared,
and on a recording with one fact altered the same search finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from emulator.conformance.compare import NONE_SO_LONG, Examined, Reference, conclude
from emulator.conformance.criteria import DELAYS
from emulator.conformance.player import script_of
from emulator.conformance.recording import Recording, read_recording
from emulator.search.guided.choices import choices_of, chosen_run, replay, write_choices
from emulator.search.guided.guided import GuidedMatch, guided, names_of
from emulator.search.guided.restarts import Budget, Restarts, Result, luby
from emulator.search.guided.search import Search, goal_of, sample
from emulator.worlds.latency import TABLE
from tests.conformance.alterations import ALTERATIONS, Alteration

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/recordings/kafka-2.6.3/min-isr-pauses"
BUDGET = Budget(seconds=300, jobs=1, searches=3, draws_per_search=20, first_samples=0)
"""Counted in draws: a slow machine does not change what is found."""

ALTERED = [
    kind for kind in ALTERATIONS if kind.points <= {1, 3, 4} and kind.sites(read_recording(FOLDER))
][:4]
RACED = [
    kind for kind in ALTERATIONS if kind.points <= {2, 5, 6} and kind.sites(read_recording(FOLDER))
][:4]


def search_without_end() -> None:
    """What it searches for does not exist."""
    real = ALTERED[0].altered(recorded(), 1)
    reference = Reference(real)
    budget = Budget(seconds=600, jobs=2, draws_per_search=10_000)
    goal = goal_of(script_of(real), reference)
    Restarts(goal, budget, lambda _: print("searching", flush=True)).run()


def test_the_searches_of_a_parent_that_was_killed_end() -> None:
    code = "from tests.sim.test_guided_search import search_without_end as run; run()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"searching\n"
        process.kill()
        # The output ends when no process has it open. Searches without a parent took two minutes.
        process.communicate(timeout=60)


def searched(real: Recording, samples: int = 0) -> Result:
    reference = Reference(real)
    goal = goal_of(script_of(real), reference)
    return Restarts(goal, replace(BUDGET, first_samples=samples), lambda _: None).run()


@cache
def recorded() -> Recording:
    return replace(read_recording(FOLDER), name="pauses")


@cache
def match() -> GuidedMatch:
    reference = Reference(recorded())

    def look(_: object, run: Recording) -> Examined:
        return reference.examine(run)

    return guided(reference, script_of(recorded()), BUDGET, look, lambda _: None)


def test_it_finds_runs_that_are_a_match_and_none_that_is_not_needed() -> None:
    assert match().is_match
    assert match().verdict.matched
    reference = Reference(recorded())
    runs = [replay(script_of(recorded()), run)[0] for run in match().choices.runs]
    examined = [reference.examine(run) for run in runs]
    assert conclude(reference, examined).matched
    for run in examined if len(examined) > 1 else []:
        assert not conclude(reference, [one for one in examined if one is not run]).matched


def test_how_many_draws_each_segment_took_is_told() -> None:
    draws = match().choices.draws
    assert next(iter(draws)) == "0"
    assert all(n >= 1 for n in draws.values())
    # The third search is twice as long (Luby's sequence).
    lengths = sum(luby(n + 1) for n in range(BUDGET.searches))
    assert sum(draws.values()) <= BUDGET.draws_per_search * lengths


def test_every_choice_is_a_seed_of_a_declared_purpose() -> None:
    chosen = [c for run in match().choices.runs for c in run.chosen]
    purposes = {c.purpose for c in chosen if c.actor and c.purpose}
    assert purposes - {"zk_tick", "zk_pace"} <= set(TABLE)


def test_its_choices_replay_alone_in_a_process_that_never_saw_the_recording(
    tmp_path: Path,
) -> None:
    write_choices(match().choices, tmp_path / "choices.json")
    script = (
        "import sys; from emulator import cli;"
        "sys.exit(cli.execute(['conform', '--replay', 'choices.json', '--write', 'played']))"
    )
    command = [sys.executable, "-c", script]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    written = sorted(tmp_path.glob("played/*/*/recording.jsonl"))
    assert [file.parent.name for file in written] == names_of(match().choices)
    for file, run in zip(written, match().choices.runs, strict=True):
        alone = read_recording(file.parent)
        here, _ = replay(script_of(recorded()), run)
        assert json.dumps(alone.events) == json.dumps(here.events)
        assert alone.results == here.results
        assert Reference(recorded()).examine(alone).agrees


def test_samples_are_a_match_where_random_seeds_are_one_and_no_search_begins() -> None:
    real = read_recording(ROOT / "tests/recordings/kafka-2.6.3/shrink-expand")
    result = searched(real, samples=10)
    assert result.matched
    assert result.progress.searches == 0
    script, reference = script_of(real), Reference(real)
    runs = [replay(script, chosen_run(one.seed, one.choices))[0] for one in result.agreeing]
    assert conclude(reference, [reference.examine(run) for run in runs]).matched


def test_a_sample_may_be_late_and_says_then_which_delay_is_still_missing() -> None:
    (late,) = (kind for kind in ALTERATIONS if kind.name == "a notification a second late")
    real = read_recording(ROOT / "tests/recordings/kafka-2.6.3/shrink-expand")
    goal = goal_of(script_of(real), Reference(late.altered(real, 1)))
    agreeing = [run for seed in range(4) for run in sample(goal, seed, lambda *_: None).agreeing]
    assert agreeing
    gaps = {key for run in agreeing for point, key in run.lacking if point == DELAYS}
    assert any("to notification" in gap and gap.endswith(NONE_SO_LONG) for gap in gaps)


def test_a_search_starts_from_a_run_and_repeats_it_where_nothing_is_missing() -> None:
    reference = Reference(recorded())
    goal = goal_of(script_of(recorded()), reference)
    number = next(n for n in range(1, 40) if sample(goal, n, lambda *_: None).agreeing)
    (start,) = sample(goal, number, lambda *_: None).agreeing
    one_draw_each = len(goal.groups)
    found = Search(goal, 2, one_draw_each, lambda *_: None, missing=[], start=start).run()
    assert [(one.seed, one.choices) for one in found.agreeing] == [(start.seed, start.choices)]


@pytest.mark.slow
@pytest.mark.parametrize("samples", [0, 6])
@pytest.mark.parametrize("alteration", ALTERED, ids=lambda kind: kind.name)
def test_the_same_search_finds_nothing_where_one_fact_is_altered(
    alteration: Alteration, samples: int
) -> None:
    assert searched(alteration.altered(recorded(), 1), samples).agreeing == ()


@pytest.mark.slow
@pytest.mark.parametrize("alteration", RACED, ids=lambda kind: kind.name)
def test_nor_where_a_fact_is_altered_that_each_run_may_lack(alteration: Alteration) -> None:
    """Its runs agree in points 1, 3 and 4 as before, and none of them is equal there."""
    result = searched(alteration.altered(recorded(), 1))
    assert result.agreeing
    assert not result.matched


@pytest.mark.slow
def test_a_single_process_goes_on_with_samples_between_its_searches_if_they_agree() -> None:
    agreeing = searched(RACED[0].altered(recorded(), 1), samples=2).progress
    assert (agreeing.samples, agreeing.searches) == (5, 3)
    different = searched(ALTERED[0].altered(recorded(), 1), samples=2).progress
    assert (different.samples, different.searches) == (2, 3)


def test_choices_hold_what_a_search_without_a_match_came_to() -> None:
    altered = ALTERED[0].altered(recorded(), 0)
    result = searched(altered)
    assert result.nearest is not None
    assert result.nearest.wrong is not None
    kept = choices_of(altered, [chosen_run(result.nearest.seed, result.nearest.choices)], {})
    assert kept.runs[0].by_stream == result.nearest.choices
