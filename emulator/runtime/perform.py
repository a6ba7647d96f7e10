"""One run from its scenario to its summary: directory, sink, listeners, the play itself.

Owns the order of things: the directory is there before the first event, the trace is closed however
the play ends, the summary is written last. It must not know which world plays, and prints nothing.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from emulator.invariants.base import Monitor, Violation, chain_of
from emulator.invariants.facts import Facts
from emulator.runtime.metrics import Progress, Run, Summary, Violated, as_json, summarize
from emulator.runtime.run_directory import RunDirectory
from emulator.scenario.expectations.base import Judge
from emulator.scenario.load import LoadedScenario
from emulator.scenario.observed import Observed
from emulator.trace.reader import Header
from emulator.trace.sink import Sink

if TYPE_CHECKING:
    from emulator.runtime.play import Outcome

SIMULATED = "simulated"
PROGRESS_EVERY_S = 0.1
OnProgress = Callable[[Progress], None]
Recognise = Callable[[Violation, Sequence[Any]], str]
"""The name of the hazard of Kafka's behind a violation; empty: none."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run. `sets` are settings of the command line; the scenario has them already."""

    scenario: LoadedScenario
    seed: int
    zookeeper: str
    time_scale: int = 1
    sets: tuple[str, ...] = ()
    repeat: str = ""
    base: Path = Path("runs")
    recognise: Recognise = lambda _violation, _events: ""


class Performed(NamedTuple):
    """A run that is over."""

    directory: Path
    summary: Summary
    events: list[Any]


class Rehearsal:
    """The listeners of one run, and what becomes of them."""

    def __init__(self, request: Request, on_progress: OnProgress | None) -> None:
        self.request = request
        scenario = request.scenario
        self.observed = Observed(
            [boot.broker for boot in scenario.boots],
            {**scenario.running().values, **scenario.settings},
        )
        self.monitor = Monitor(Facts(self.observed.partitions, self.observed.logs))
        self.judge = Judge(scenario.expectations, self.observed)
        self.directory = RunDirectory.create(
            request.base, scenario.name, request.seed, datetime.now(UTC)
        )
        self.sink = Sink()
        self._on_progress = on_progress
        self._told_s = 0.0

    def begin(self) -> None:
        """Write down what is going to happen, and listen."""
        request, scenario = self.request, self.request.scenario
        self.directory.describe(scenario.text, _about(request))
        self.directory.open_trace(
            Header(
                trace=1,
                scenario=scenario.name,
                seed=request.seed,
                profile=scenario.profile,
                zookeeper=request.zookeeper,
                settings=dict(scenario.settings),
            )
        )
        for listener in (self.observed, self.monitor, self.judge, self.directory):
            self.sink.listen(listener)

    def on_progress(self, _now_us: int) -> None:
        """Whoever kills us now shall find what happened until now."""
        now_s = time.monotonic()
        if now_s - self._told_s < PROGRESS_EVERY_S:
            return
        self._told_s = now_s
        self.directory.flush()
        if self._on_progress is not None:
            self._on_progress(Progress.of(self.observed))

    def finish(self, outcome: Outcome | Interrupted) -> Performed:
        """Judge, and write the summary."""
        request, scenario = self.request, self.request.scenario
        tolerated_us = scenario.kernel_late_ms * 1000 * request.time_scale
        live = request.zookeeper != SIMULATED
        run = Run(
            scenario=scenario.name,
            seed=request.seed,
            profile=scenario.profile,
            zookeeper=request.zookeeper,
            time_scale=request.time_scale,
            settings=dict(scenario.settings),
            run_directory=str(self.directory.path),
            virtual_us=outcome.virtual_us,
            wall_ms=outcome.wall_ms,
            kernel_late_us_max=outcome.kernel_late_us_max,
            interrupted=outcome.interrupted,
            kernel_was_late=live and outcome.kernel_late_us_max > tolerated_us,
            violations=tuple(map(self._violated, self.monitor.at_end())),
        )
        self.directory.flush()
        summary = summarize(run, self.observed, self.judge.findings())
        self.directory.summarize(as_json(summary))
        return Performed(self.directory.path, summary, self.sink.events)

    def _violated(self, violation: Violation) -> Violated:
        events = self.sink.events
        return Violated(
            violation.invariant,
            violation.text,
            self.request.recognise(violation, events),
            None if violation.partition is None else str(violation.partition),
            violation.broker,
            violation.facts,
            tuple(event.seq for event in chain_of(events, violation.facts[1])),
        )


class Interrupted(msgspec.Struct):
    """The outcome of a play that was broken off before it could give one itself."""

    virtual_us: int
    wall_ms: int
    kernel_late_us_max: int = 0
    interrupted: bool = True


class PlayFailed(Exception):
    """A play ended with an exception (its cause); `kept` has the traceback."""

    def __init__(self, kept: Path | None) -> None:
        super().__init__("the play failed")
        self.kept = kept


def perform(request: Request, on_progress: OnProgress | None = None) -> Performed:
    """Run it. Exceptions of the play come as PlayFailed, with what was recorded kept."""
    from emulator.runtime.play import PlayOptions, play

    rehearsal = Rehearsal(request, on_progress)
    options = PlayOptions(
        seed=request.seed,
        zookeeper=request.zookeeper,
        time_scale=request.time_scale,
        data_dir=rehearsal.directory.zookeeper,
        on_progress=rehearsal.on_progress,
    )
    began = time.monotonic()
    try:
        rehearsal.begin()
        outcome = play(request.scenario, options, rehearsal.sink)
        return rehearsal.finish(outcome)
    except KeyboardInterrupt:
        wall_ms = int((time.monotonic() - began) * 1000)
        rehearsal.sink.close()
        return rehearsal.finish(Interrupted(rehearsal.observed.clock.now_us, wall_ms))
    except Exception as error:
        kept = rehearsal.directory.keep_traceback(traceback.format_exc())
        raise PlayFailed(kept) from error
    finally:
        rehearsal.directory.close()


def _about(request: Request) -> dict[str, Any]:
    scenario = request.scenario
    return {
        "scenario": scenario.name,
        "source": scenario.source,
        "seed": request.seed,
        "profile": scenario.profile,
        "zookeeper": request.zookeeper,
        "time_scale": request.time_scale,
        "guards": {name: "on" if on else "off" for name, on in scenario.guards.items()},
        "propagation": scenario.propagation,
        "set": list(request.sets),
        "repeat": request.repeat,
    }
