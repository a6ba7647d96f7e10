"""Brokers that ask the controller for another ISR do what real ones of 2.7.2 did, under nearly
every seed; and without a rule of that path they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.conformance.compare import Verdict, judge
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import read_recording
from emulator.scenario.version import VersionOptions

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kafka-2.7.2"
NAMES = [
    pytest.param(path.name, marks=[pytest.mark.soak] if path.name == "latency" else [])
    for path in sorted(RECORDINGS.iterdir())
]
SEEDS = 3


def judged(name: str, chosen: VersionOptions | None = None, seeds: int = SEEDS) -> Verdict:
    real = read_recording(RECORDINGS / name)
    script = script_of(real, chosen or VersionOptions())
    return judge(real, [simulate(script, seed) for seed in range(1, seeds + 1)])


@pytest.mark.parametrize("name", NAMES)
def test_nearly_every_seed_agrees_and_nothing_else_differs(name: str) -> None:
    verdict = judged(name)
    assert verdict.seeds_agreeing >= SEEDS - 1, verdict.nearest_differences
    assert verdict.points == dict.fromkeys(range(1, 8), True), verdict.nearest_differences


@pytest.mark.parametrize(
    ("name", "chosen", "point"),
    [
        ("shrink-expand", VersionOptions("2.6"), 1),
        ("shrink-expand", VersionOptions(propagation="zk"), 1),
        ("controller-paused", VersionOptions(propagation="zk"), 1),
        ("leader-crash", VersionOptions(propagation="zk"), 1),
    ],
)
def test_it_would_notice_leaders_that_write_themselves(
    name: str, chosen: VersionOptions, point: int
) -> None:
    verdict = judged(name, chosen, seeds=2)
    assert verdict.seeds_agreeing == 0
    assert verdict.points[point] is False
