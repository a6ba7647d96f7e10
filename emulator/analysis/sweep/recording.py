"""A run into a data set: the one way for every command that plays runs.

Owns which directory a run gets, and when its first and last rows are written. `recorder` is for a
run that is performed (`isr run`), the others for one whose events are there. How rows become files
is `analysis.writer`'s business.
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
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.repro import repeated
from emulator.search.fuzz.trial import ENDLESS, EXCEPTION, PlayedTrial
from emulator.trace.rows import RunBegan


class RunRecorder(RunWriter):
    """A run that goes on, on its way into a data set."""

    def summarize(self, summary: Summary) -> None:
        """The run is over."""
        self.finish(rows.ended(summary))


def recorder(base: Path, request: Request) -> Callable[[Path], DatasetWriter]:
    """For `Request.dataset`: the run gets its directory's name."""

    def writer(directory: Path) -> DatasetWriter:
        return RunRecorder(base, key_of(request.scenario, directory.name), _began(request))

    return writer


def keep(base: Path, request: Request, run: str, played: Played) -> None:
    """A run that was played in memory, as run `run` of its scenario and profile. Playing it again
    and keeping it again changes nothing."""
    key = key_of(request.scenario, run)
    write_run(base, key, _began(request), played.events, rows.ended(played.summary))


def keep_side(base: Path, began_at: str, side: Variant, request: Request, played: Played) -> None:
    """A play of one side of `isr compare`, under the name that its scenario has without sides. A
    live play is never the same again: its run's name has the time too."""
    live = [] if request.zookeeper == SIMULATED else [began_at]
    own = msgspec.structs.replace(request, scenario=side.scenario)
    keep(base, own, "-".join([side.name, *live, f"{request.seed:#x}"]), played)


def key_of(scenario: Scenario, run: str) -> RunKey:
    """Where a run of this scenario belongs."""
    return RunKey(scenario.name, scenario.profile, rows.propagation_of(scenario), run)


def keep_random(base: Path, chosen: VersionOptions, played: PlayedTrial) -> None:
    """A random world of `isr fuzz`, by its seed; one that could not even be loaded has no run."""
    scenario, trial = played.scenario, played.trial
    if scenario is None:
        return
    first = rows.began(scenario, trial.seed, replay=repeated(trial.seed, chosen))
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
