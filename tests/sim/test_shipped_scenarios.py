"""Every shipped scenario in virtual time: what it expects holds, whatever the seed.

That nothing of it holds without its faults: `test_expectations_need_their_fault`.
"""

from __future__ import annotations

import pytest

from emulator.runs.play import PlayOptions
from tests.sim.shipped_runs import NAMES, RACE_FREE, played, scenario

SEEDS, MANY_SEEDS = range(2), range(2, 30)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(MANY_SEEDS, marks=pytest.mark.soak)])
def test_what_it_expects_holds_and_a_race_free_one_has_one_history(name: str, seeds: range) -> None:
    runs = [played(scenario(name), PlayOptions(seed=seed)) for seed in seeds]
    for seed, run in zip(seeds, runs, strict=True):
        missed = {text: one.seen for text, one in run.findings.items() if one.held is not True}
        assert missed == {}, seed
    if name in RACE_FREE:
        assert len({str(run.isr_histories) for run in runs}) == 1
        assert len({tuple(run.observed.counts.notified) for run in runs}) == 1
