"""A failing world as a run directory, which can be played and shown like any other.

Owns what is written for which kind of failure: an endless run has only its scenario. Prints
nothing.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from emulator.runs.play import SIMULATED
from emulator.runs.run_directory import SCENARIO, RunDirectory
from emulator.runs.session import PlayFailed, Request, play_run
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.search.fuzz.shrink import shrink
from emulator.search.fuzz.trial import ENDLESS, Trial
from emulator.search.fuzz.worlds import draw_world

NAME = "fuzz"


def keep(trial: Trial, base: Path, *, small: bool = False) -> Path:
    """Play a failing seed again with a run directory, and return it. `small`: reduce the world
    first."""
    text = draw_world(trial.seed, trial.chosen, storage=trial.storage)
    if small:
        text = shrink(text, trial.seed)
    if any(failure.invariant == ENDLESS for failure in trial.failures):
        return _only_described(text, trial.seed, base)
    try:
        scenario = loads(text, NAME)
    except UserError:
        return _only_described(text, trial.seed, base)
    request = Request(
        scenario=scenario,
        seed=trial.seed,
        zookeeper=SIMULATED,
        base=base,
        repeat=repeated(trial),
    )
    try:
        directory = play_run(request).directory
        assert directory is not None
        return directory
    except PlayFailed as failed:
        return (failed.traceback_file or base).parent


def repeated(trial: Trial) -> str:
    """The command that repeats this seed."""
    words = ["isr", "fuzz", "--seed", f"{trial.seed:#x}", "--runs", "1", *trial.chosen.words()]
    words += ["--storage"] * trial.storage
    return shlex.join(words)


def _only_described(text: str, seed: int, base: Path) -> Path:
    directory = RunDirectory.create(base, NAME, seed, datetime.now(UTC))
    directory.describe(text, {"scenario": NAME, "seed": seed, "zookeeper": SIMULATED})
    return directory.path


def replay_command(directory: Path, seed: int) -> str:
    """The command that plays the directory's scenario."""
    return f"isr run {directory / SCENARIO} --seed {seed:#x} --zookeeper {SIMULATED}"
