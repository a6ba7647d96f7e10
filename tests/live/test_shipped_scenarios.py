"""Every shipped scenario on a real ZooKeeper server, its times divided: what it expects holds there
too, and one that is free of races has the ISR history and notifications of virtual time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.runtime.play import PlayOptions
from tests.sim.shipped_runs import NAMES, RACE_FREE, Played, played, scenario

TIME_SCALE = 8
PLAYS = 4

pytestmark = pytest.mark.live


def live(name: str, tmp_path: Path) -> Played:
    """A play whose kernel was in time; a machine that is busy may need several."""
    loaded = scenario(name)
    for attempt in range(PLAYS):
        run = played(
            loaded,
            PlayOptions(
                seed=attempt,
                zookeeper="embedded",
                time_scale=TIME_SCALE,
                data_dir=tmp_path / f"zookeeper-{attempt}",
            ),
        )
        if run.outcome.kernel_late_us_max <= loaded.kernel_late_ms * 1000 * TIME_SCALE // 2:
            break
    return run


@pytest.mark.parametrize("name", NAMES)
def test_what_it_expects_holds_live(name: str, tmp_path: Path) -> None:
    run = live(name, tmp_path)
    assert {text: one.seen for text, one in run.findings.items() if one.held is not True} == {}
    if name in RACE_FREE:
        simulated = played(scenario(name), PlayOptions(seed=1))
        assert run.isr_histories == simulated.isr_histories
        assert run.observed.counts.notified == simulated.observed.counts.notified
