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
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from emulator.invariants.base import Monitor, Violation, chain_of
from emulator.runs.run_directory import RunDirectory
from emulator.runs.summary import Progress, Run, Summary, Violated, as_json, summarize
from emulator.scenario.expectations.base import Judge
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario
from emulator.trace.events import AnyEvent
from emulator.trace.reader import SCHEMA_VERSION, Header
from emulator.trace.sink import Sink
from emulator.trace.state import Observed
from emulator.trace.state.beliefs import Facts

if TYPE_CHECKING:
    from emulator.runs.play import Outcome

SIMULATED = "simulated"
PROGRESS_EVERY_S = 0.1
OnProgress = Callable[[Progress], None]
Recognise = Callable[[Violation, Sequence[Any]], str]
"""The name of the hazard of Kafka's behind a violation; empty: none."""


class Recorder(Protocol):
    """Hears every event of a run and keeps it somewhere; asked to write down what it has now and
    then, and told the summary at the end."""

    def __call__(self, event: Any) -> None: ...

    def now_and_then(self) -> None: ...

    def flush(self) -> None: ...

    def summarize(self, summary: Summary) -> None: ...


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run. `sets` are settings of the command line; the scenario has them already.
    `recorder` makes one more that hears the run, of its directory."""

    scenario: LoadedScenario
    seed: int
    zookeeper: str
    time_scale: int = 1
    target: str = ""
    sets: tuple[str, ...] = ()
    repeat: str = ""
    base: Path = Path("runs")
    recognise: Recognise = lambda _violation, _events: ""
    recorder: Callable[[Path], Recorder] | None = None


class Performed(NamedTuple):
    """A run that is over."""

    directory: Path
    summary: Summary
    events: list[Any]


class Audience:
    """Who hears a run's events: what is observed, invariants, expectations; and what they say."""

    def __init__(self, request: Request) -> None:
        self.request = request
        scenario = request.scenario
        self.observed = Observed(
            [boot.broker for boot in scenario.boots],
            {**scenario.running().values, **scenario.settings},
        )
        self.monitor = Monitor(Facts(self.observed.partitions, self.observed.logs))
        self.judge = Judge(scenario.expectations, self.observed)
        self.sink = Sink()

    def listen(self) -> None:
        """From now on."""
        for listener in (self.observed, self.monitor, self.judge):
            self.sink.listen(listener)

    def summary(self, outcome: Outcome | Interrupted, directory: str = "") -> Summary:
        """Judge."""
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
            run_directory=directory,
            virtual_us=outcome.virtual_us,
            wall_ms=outcome.wall_ms,
            kernel_late_us_max=outcome.kernel_late_us_max,
            interrupted=outcome.interrupted,
            kernel_was_late=live and outcome.kernel_late_us_max > tolerated_us,
            violations=tuple(map(self._violated, self.monitor.at_end())),
        )
        return summarize(run, self.observed, self.judge.findings())

    def _violated(self, violation: Violation) -> Violated:
        return violated(violation, self.sink.events, self.request.recognise)


def violated(violation: Violation, events: Sequence[AnyEvent], recognise: Recognise) -> Violated:
    """As reports have it: with the hazard of Kafka's behind it, and the chain of causes."""
    return Violated(
        violation.invariant,
        violation.text,
        recognise(violation, events),
        None if violation.partition is None else str(violation.partition),
        violation.broker,
        violation.facts,
        tuple(event.seq for event in chain_of(events, violation.facts[1])),
    )


class Rehearsal(Audience):
    """The listeners of one run that is kept in a directory, and what becomes of them."""

    def __init__(self, request: Request, on_progress: OnProgress | None) -> None:
        super().__init__(request)
        self.directory = RunDirectory.create(
            request.base, request.scenario.name, request.seed, datetime.now(UTC)
        )
        self._on_progress = on_progress
        self._told_s = 0.0
        self._recorder: Recorder | None = None

    def begin(self) -> None:
        """Write down what is going to happen, and listen."""
        request, scenario = self.request, self.request.scenario
        self.directory.describe(scenario.text, _about(request))
        self.directory.open_trace(header_of(scenario, request.seed, request.zookeeper))
        self.listen()
        self.sink.listen(self.directory)
        if request.recorder is not None:
            self._recorder = request.recorder(self.directory.path)
            self.sink.listen(self._recorder)

    def on_progress(self, now_us: int) -> None:
        """Whoever kills us now shall find what happened until now."""
        now_s = time.monotonic()
        if now_s - self._told_s < PROGRESS_EVERY_S:
            return
        self._told_s = now_s
        self.directory.flush()
        if self._recorder is not None:
            self._recorder.now_and_then()
        if self._on_progress is not None:
            self._on_progress(Progress.of(self.observed, now_us))

    def finish(self, outcome: Outcome | Interrupted) -> Performed:
        """Judge, and write the summary."""
        self.directory.flush()
        summary = self.summary(outcome, str(self.directory.path))
        self.directory.summarize(as_json(summary))
        if self._recorder is not None:
            self._recorder.summarize(summary)
        return Performed(self.directory.path, summary, self.sink.events)

    def break_off(self) -> None:
        """A play that failed has no summary; what happened until then is kept."""
        if self._recorder is not None:
            self._recorder.flush()


def header_of(scenario: Scenario, seed: int, zookeeper: str) -> Header:
    """The first line of a run's trace."""
    version = scenario.running()
    return Header(
        trace=SCHEMA_VERSION,
        scenario=scenario.name,
        seed=seed,
        profile=scenario.profile,
        zookeeper=zookeeper,
        settings=dict(scenario.settings),
        defaults=dict(version.values),
        guards=tuple(sorted(guard.name for guard in version.guards)),
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
    from emulator.runs.play import PlayOptions, play

    rehearsal = Rehearsal(request, on_progress)
    options = PlayOptions(
        seed=request.seed,
        zookeeper=request.zookeeper,
        time_scale=request.time_scale,
        target=request.target,
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
        rehearsal.break_off()
        kept = rehearsal.directory.keep_traceback(traceback.format_exc())
        raise PlayFailed(kept) from error
    finally:
        rehearsal.directory.close()


def perform_in_memory(
    request: Request, on_progress: Callable[[int], None] | None = None
) -> tuple[Summary, list[Any]]:
    """Run it, and write nothing: the summary and the events. `on_progress` gets microseconds."""
    from emulator.runs.play import PlayOptions, play

    audience = Audience(request)
    audience.listen()
    options = PlayOptions(
        seed=request.seed,
        zookeeper=request.zookeeper,
        time_scale=request.time_scale,
        on_progress=on_progress,
    )
    outcome = play(request.scenario, options, audience.sink)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return audience.summary(outcome), audience.sink.events


def _about(request: Request) -> dict[str, Any]:
    scenario = request.scenario
    return {
        "scenario": scenario.name,
        "source": scenario.source,
        "seed": request.seed,
        "profile": scenario.profile,
        "zookeeper": request.zookeeper,
        "time_scale": request.time_scale,
        "target": request.target,
        "guards": {name: "on" if on else "off" for name, on in scenario.guards.items()},
        "propagation": scenario.propagation,
        "set": list(request.sets),
        "repeat": request.repeat,
    }
