"""The shipped scenarios that are free of races, on brokers that are processes, beside virtual time.

Each run is exported as a recording, and the judge of recordings cannot tell it from simulated ones
in any of its points: state znodes (1), notifications (2), sessions and controller (3), what brokers
were told (4), ISR decisions (5), requests to ZooKeeper by thread (6), what became of records (7).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from emulator.conformance.compare import judge
from tests.live.agreeing import SEEDS, LiveRun, comparable, isr_run, longer, simulated, written
from tests.sim.shipped_runs import RACE_FREE, scenario

pytestmark = [pytest.mark.live, pytest.mark.slow]

LONG_US = 25_000_000
"""From here on a play, which takes as long as it says, is one for `make soak`."""

AT_A_TIME = 2


def in_time(name: str) -> Any:
    long = scenario(name).duration_us > LONG_US
    return pytest.param(name, marks=pytest.mark.soak) if long else name


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[LiveRun]]]:
    """Those that tests were chosen for, a few at a time."""
    out = tmp_path_factory.mktemp("runs")
    chosen = [n for n in RACE_FREE if any(f"[{n}]" in i.name for i in request.session.items)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {
            n: pool.submit(isr_run, str(longer(n, out / n)), out / n, "--target", "processes")
            for n in chosen
        }


@pytest.mark.parametrize("name", [in_time(name) for name in RACE_FREE])
def test_a_race_free_one_agrees_literally(name: str, runs: dict[str, Future[LiveRun]]) -> None:
    """Its expectations hold; the judge sees no difference; ISR histories and notifications, with
    their writers, are byte for byte the same."""
    run = runs[name].result()
    assert run.code == 0, run.said
    simulations = [simulated(run.source, seed) for seed in SEEDS]
    points = comparable(run)
    nearest = judge(run.recording, simulations).nearest_differences
    assert {point: nearest[point] for point in points} == dict.fromkeys(points)
    live = written(run.recording)
    assert [written(one) for one in simulations] == [live] * len(SEEDS)
