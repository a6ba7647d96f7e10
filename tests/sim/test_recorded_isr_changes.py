"""Recordings without crashes are matched under nearly every seed; and a play knows only the
settings and actions of a recording.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.conformance.compare import judge
from emulator.conformance.player import script_of, simulate
from emulator.conformance.recording import Recording, read_recording, write_recording
from emulator.search.guided.choices import inputs_of

RECORDINGS = Path(__file__).parents[1] / "recordings" / "kafka-2.6.3"
SEEDS = 3
NOBODY_DIES = (
    "busy-topic",
    "controller-paused",
    "flapping",
    "high-watermark",
    "idle-topic",
    "latency",
    "min-isr-pauses",
    "quiet-then-change",
    "shrink-expand",
    "shrink-expand-many",
    "slow-catch-up",
    "slow-follower",
)


@pytest.mark.parametrize("name", NOBODY_DIES)
def test_nearly_every_seed_agrees_and_nothing_else_differs(name: str) -> None:
    real = read_recording(RECORDINGS / name)
    script = script_of(real)
    verdict = judge(real, [simulate(script, seed) for seed in range(1, SEEDS + 1)])
    assert verdict.seeds_agreeing >= SEEDS - 1, verdict.nearest_differences
    assert verdict.points == dict.fromkeys(range(1, 8), True), verdict.nearest_differences


def bare(real: Recording, folder: Path) -> Recording:
    """The recording as a stranger has it, read from its files; with the request of a process that
    may not register, which says how long it booted."""
    write_recording(inputs_of(real), folder / real.name)
    return read_recording(folder / real.name)


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.iterdir()))
def test_nothing_but_settings_and_actions_is_played(name: str, tmp_path: Path) -> None:
    real = replace(read_recording(RECORDINGS / name), name=name)
    blind = bare(real, tmp_path)
    assert not blind.transactions and not blind.results
    ours, theirs = script_of(real), script_of(blind)
    assert ours == theirs
    if name in ("leader-crash", "shrink-expand"):
        whole, of_blind = simulate(ours, 1), simulate(theirs, 1)
        assert (whole.events, whole.results) == (of_blind.events, of_blind.results)
