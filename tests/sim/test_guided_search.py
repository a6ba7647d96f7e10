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

from emulator.conformance.alterations import ALTERATIONS, Alteration
from emulator.conformance.choices import choices_of, replay, write_choices
from emulator.conformance.compare import Examined, Reference
from emulator.conformance.guided import Guided, guided
from emulator.conformance.player import script_of
from emulator.conformance.portfolio import Budget, Portfolio, Result
from emulator.conformance.recording import Recording, read_recording
from emulator.conformance.search import goal_of
from emulator.runtime.latency import TABLE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/recordings/kafka-2.6.3/min-isr-pauses"
BUDGET = Budget(seconds=300, jobs=1, searches=3, draws_per_search=20)
"""Counted in draws: a slow machine does not change what is found."""

ALTERED = [
    kind for kind in ALTERATIONS if kind.points <= {1, 3, 4} and kind.sites(read_recording(FOLDER))
][:4]


def searched(real: Recording) -> Result:
    reference = Reference(real)
    goal = goal_of(script_of(real), reference)
    return Portfolio(goal, BUDGET, lambda _: None).run()


@cache
def recorded() -> Recording:
    return replace(read_recording(FOLDER), name="pauses")


@cache
def match() -> Guided:
    reference = Reference(recorded())

    def look(_: object, run: Recording) -> Examined:
        return reference.examine(run)

    return guided(reference, script_of(recorded()), BUDGET, look, lambda _: None)


def test_it_finds_a_run_that_agrees_in_everything() -> None:
    assert match().found
    assert match().verdict.matched


def test_how_many_draws_each_stretch_took_is_told() -> None:
    draws = match().choices.draws
    assert next(iter(draws)) == "0"
    assert all(n >= 1 for n in draws.values())
    assert sum(draws.values()) <= BUDGET.draws_per_search * BUDGET.searches


def test_every_choice_is_a_seed_of_a_declared_purpose() -> None:
    purposes = {c.purpose for c in match().choices.chosen if c.purpose}
    assert purposes - {"zk_tick"} <= set(TABLE)


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
    (written,) = tmp_path.glob("played/*/*/recording.jsonl")
    alone = read_recording(written.parent)
    here, _ = replay(script_of(recorded()), match().choices)
    assert json.dumps(alone.events) == json.dumps(here.events)
    assert alone.results == here.results
    assert Reference(recorded()).examine(alone).agrees


@pytest.mark.slow
@pytest.mark.parametrize("alteration", ALTERED, ids=lambda kind: kind.name)
def test_the_same_search_finds_nothing_where_one_fact_is_altered(alteration: Alteration) -> None:
    assert searched(alteration.altered(recorded(), 1)).found is None


def test_choices_hold_what_a_search_without_a_match_came_to() -> None:
    altered = ALTERED[0].altered(recorded(), 0)
    result = searched(altered)
    assert result.nearest is not None
    kept = choices_of(altered, result.nearest.seed, result.nearest.choices, {})
    assert kept.by_stream == result.nearest.choices
