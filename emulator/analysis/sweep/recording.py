"""Writes a run into a data set, for every command that plays runs.

Owns a run's directory, and when its first and last rows are written. `recorder` is for a run in
progress (`isr run`), the other functions for finished ones. `analysis.writer` writes the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from emulator.analysis.dataset import RunKey
from emulator.analysis.writer import RunWriter, write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.comparison import Variant
from emulator.runs.play import SIMULATED
from emulator.runs.session import DatasetWriter, Played, Request
from emulator.runs.summary import Summary
from emulator.scenario.schema import Scenario
from emulator.search.fuzz.repro import repeated
from emulator.search.fuzz.trial import ENDLESS, EXCEPTION, PlayedTrial
from emulator.trace.rows import RunBegan


class RunRecorder(RunWriter):
    """Writes a run in progress into a data set."""

    def summarize(self, summary: Summary) -> None:
        """The run is over."""
        self.finish(rows.ended(summary))


def recorder(base: Path, request: Request) -> Callable[[Path], DatasetWriter]:
    """For `Request.dataset`. The run is named after its directory."""

    def writer(directory: Path) -> DatasetWriter:
        return RunRecorder(base, key_of(request.scenario, directory.name), _began(request))

    return writer


def keep(base: Path, request: Request, run: str, played: Played) -> None:
    """Write a run that was played in memory, under the name `run`. Writing the same run again
    changes nothing."""
    key = key_of(request.scenario, run)
    write_run(base, key, _began(request), played.events, rows.ended(played.summary))


def keep_side(base: Path, began_at: str, side: Variant, request: Request, played: Played) -> None:
    """Write a run of one side of `isr compare`, under the scenario's name without the side. Live
    runs are not reproducible, so their names include the time."""
    live = [] if request.zookeeper == SIMULATED else [began_at]
    own = msgspec.structs.replace(request, scenario=side.scenario)
    keep(base, own, "-".join([side.name, *live, f"{request.seed:#x}"]), played)


def key_of(scenario: Scenario, run: str) -> RunKey:
    """The key of a run of this scenario."""
    return RunKey(scenario.name, scenario.profile, rows.propagation_of(scenario), run)


def keep_random(base: Path, played: PlayedTrial) -> None:
    """Write a random world of `isr fuzz` under its seed; a world that did not load has no run."""
    scenario, trial = played.scenario, played.trial
    if scenario is None:
        return
    first = rows.began(scenario, trial.seed, replay=repeated(trial))
    cut_short = any(one.invariant in (ENDLESS, EXCEPTION) for one in trial.failures)
    last = rows.ended_with(trial.failures, trial.virtual_us, cut_short=cut_short)
    write_run(base, key_of(scenario, f"{trial.seed:#x}"), first, played.events, last)


def _began(request: Request) -> RunBegan:
    return rows.began(
        request.scenario,
        request.seed,
        zookeeper=request.zookeeper,
        sets=request.sets,
        replay=request.repeat,
    )
