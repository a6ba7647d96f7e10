"""Every shipped scenario in virtual time: what it expects holds, and only because of its faults."""

from __future__ import annotations

from functools import cache

import pytest

from emulator.runs.play import PlayOptions
from tests.sim.shipped_runs import NAMES, RACE_FREE, Played, played, scenario, without_faults

SEEDS = range(5)


@cache
def simulated(name: str, seed: int) -> Played:
    return played(scenario(name), PlayOptions(seed=seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_it_expects_holds(name: str, seed: int) -> None:
    run = simulated(name, seed)
    assert {text: one.seen for text, one in run.findings.items() if one.held is not True} == {}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_it_holds_when_its_faults_are_taken_away(name: str) -> None:
    run = played(without_faults(scenario(name)), PlayOptions(seed=1))
    assert {text: one.seen for text, one in run.findings.items() if one.held} == {}


@pytest.mark.parametrize("name", RACE_FREE)
def test_a_race_free_one_has_one_isr_history_and_the_same_notifications(name: str) -> None:
    runs = [simulated(name, seed) for seed in SEEDS]
    assert len({str(run.isr_histories) for run in runs}) == 1
    assert len({tuple(run.observed.counts.notified) for run in runs}) == 1
