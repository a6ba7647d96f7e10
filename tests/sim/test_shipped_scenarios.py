"""Every shipped scenario in virtual time: what it expects holds, whatever the seed.

That nothing of it holds without its faults: `test_expectations_need_their_fault`.
"""

from __future__ import annotations

import pytest

from emulator.runs.play import PlayOptions
from tests.sim.shipped_runs import NAMES, RACE_FREE, played, scenario

SEEDS = range(5)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_expects_holds_and_a_race_free_one_has_one_history(name: str) -> None:
    runs = [played(scenario(name), PlayOptions(seed=seed)) for seed in SEEDS]
    for seed, run in enumerate(runs):
        missed = {text: one.seen for text, one in run.findings.items() if one.held is not True}
        assert missed == {}, seed
    if name in RACE_FREE:
        assert len({str(run.isr_histories) for run in runs}) == 1
        assert len({tuple(run.observed.counts.notified) for run in runs}) == 1
