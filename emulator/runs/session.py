"""A judged play: a world, its trace, and the trace's listeners.

All commands play through this module. `RunListeners` is the trace with its judges; `WrittenRun`
also writes a run directory; `Session` is a world with listeners, which a test, a search or an
interactive user controls step by step. `play_run` and `play_in_memory` play a scenario from boot to
end. The order matters: the directory exists before the first event, the judges receive each event
before it is written, and the summary is written last.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, Self

import msgspec

from emulator.invariants.base import Monitor
from emulator.kernel.scheduler import Kernel
from emulator.runs import play as playing
from emulator.runs.broken import Broken, explain
from emulator.runs.play import SIMULATED, OnUp, Outcome, PlayOptions, Run, World, make_world
from emulator.runs.run_directory import TRACE, RunDirectory
from emulator.runs.summary import Progress, RunFacts, Summary, as_json, summarize
from emulator.scenario.expectations.base import Judge, checks
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Scenario
from emulator.scenario.version import switch_words
from emulator.trace.events import AnyEvent
from emulator.trace.on_disk import EventsOnDisk
from emulator.trace.reader import SCHEMA_VERSION, Header
from emulator.trace.sink import Sink
from emulator.trace.state import TraceState
from emulator.worlds.kafka_logs import ReadKafkaLogs, no_logs

PROGRESS_EVERY_S = 0.1
EVENTS_KEPT_MAX = 100_000
"""A written run in virtual time with more events keeps none of them in memory: these take about 30
MB, and a run of hours has hundreds of times as many."""

OnProgress = Callable[[Progress], None]
Listening = Literal["everything", "invariants", "nothing"]
"""The listeners: state, invariants and expectations; only invariants; or none."""


class DatasetWriter(Protocol):
    """Writes a run into a data set while it is played."""

    def __call__(self, event: AnyEvent) -> None: ...

    def flush_if_due(self) -> None: ...

    def flush(self) -> None: ...

    def summarize(self, summary: Summary) -> None: ...


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to play. `sets`: settings of the command line, already applied to the scenario.
    `repeat`: the command that plays it again. `base`: the parent of run directories. `dataset`:
    makes a writer for the run in this directory. `read_kafka`: reads the logs of real Kafka
    hosts."""

    scenario: LoadedScenario
    seed: int
    zookeeper: str = SIMULATED
    time_scale: int = 1
    target: str = ""
    sets: tuple[str, ...] = ()
    repeat: str = ""
    base: Path = Path("runs")
    dataset: Callable[[Path], DatasetWriter] | None = None
    read_kafka: ReadKafkaLogs = no_logs


class Played(msgspec.Struct, frozen=True):
    """A finished run. `directory`: its run directory (None: in memory only). `lacking`: what was
    still missing at the end, if liveness was judged."""

    events: Sequence[AnyEvent]
    summary: Summary
    directory: Path | None = None
    lacking: tuple[Broken, ...] = ()

    @property
    def broken(self) -> tuple[Broken, ...]:
        return self.summary.violations


class RunListeners:
    """A run's trace and its judges. With `liveness`, the liveness invariants are judged too; a
    summary never contains those.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        hearing: Listening = "everything",
        liveness: bool = False,
        kept_max: int | None = None,
    ) -> None:
        self.sink = Sink(kept_max)
        settings = {**scenario.running().values, **scenario.settings}
        # If all events stay in memory, so do the histories of levels.
        levels = kept_max is None or any(
            checks()[one.check].reads_levels for one in scenario.expectations
        )
        brokers = [boot.broker for boot in scenario.boots]
        self.state = TraceState(brokers, settings, level_histories=levels)
        self.judge = Judge(scenario.expectations, self.state)
        shared = self.state if hearing == "everything" else None
        self.monitor = Monitor(shared, liveness=liveness)
        # The monitor reads the state, and the judge reads both: each must receive an event after
        # those it reads.
        if hearing == "everything":
            self.sink.listen(self.state)
        if hearing != "nothing":
            self.sink.listen(self.monitor)
        if hearing == "everything":
            self.sink.listen(self.judge)

    @property
    def events(self) -> Sequence[AnyEvent]:
        """All events so far."""
        return self.sink.events

    def broken(self, *, at_end: bool = False) -> tuple[Broken, ...]:
        """Invariants violated so far; `at_end`: including liveness."""
        violations = self.monitor.at_end() if at_end else self.monitor.violations
        return tuple(explain(violation, self.events) for violation in violations)

    def played(self, request: Request, outcome: Outcome, directory: Path | None = None) -> Played:
        """Judge the finished run."""
        scenario = request.scenario
        tolerated_us = scenario.kernel_late_ms * 1000 * request.time_scale
        is_live = request.zookeeper != SIMULATED
        facts = RunFacts(
            scenario=scenario.name,
            seed=request.seed,
            profile=scenario.profile,
            zookeeper=request.zookeeper,
            time_scale=request.time_scale,
            settings=dict(scenario.settings),
            run_directory="" if directory is None else str(directory),
            virtual_us=outcome.virtual_us,
            wall_ms=outcome.wall_ms,
            kernel_late_us_max=outcome.kernel_late_us_max,
            interrupted=outcome.interrupted,
            kernel_was_late=is_live and outcome.kernel_late_us_max > tolerated_us,
            violations=self.broken(),
        )
        summary = summarize(facts, self.state, self.judge.findings())
        lacking = tuple(explain(one, self.events) for one in self.monitor.lacking())
        return Played(self.events, summary, directory, lacking)


class WrittenRun(RunListeners):
    """The listeners of a run that is written to a directory and optionally to a data set. Use as a
    context manager, which closes the trace however the run ends."""

    def __init__(
        self, request: Request, on_progress: OnProgress | None = None, *, liveness: bool = False
    ) -> None:
        # A live cluster's world reads its own events.
        kept_max = EVENTS_KEPT_MAX if request.zookeeper == SIMULATED else None
        super().__init__(request.scenario, liveness=liveness, kept_max=kept_max)
        self.request = request
        self.directory = RunDirectory.create(
            request.base, request.scenario.name, request.seed, datetime.now(UTC)
        )
        self._on_progress = on_progress
        self._progress_s = 0.0
        self._dataset: DatasetWriter | None = None

    @property
    def events(self) -> Sequence[AnyEvent]:
        """All flushed events; those of a long run are read from the file."""
        if self.sink.has_all:
            return self.sink.events
        return EventsOnDisk(self.directory.path / TRACE, self.sink.next_seq)

    def begin(self) -> None:
        """Write the inputs of the run, and start to listen."""
        request, scenario = self.request, self.request.scenario
        self.directory.describe(scenario.text, _manifest(request))
        self.directory.open_trace(header_of(scenario, request.seed, request.zookeeper))
        self.sink.listen(self.directory)
        if request.dataset is not None:
            self._dataset = request.dataset(self.directory.path)
            self.sink.listen(self._dataset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.directory.close()

    def on_progress(self, now_us: int) -> None:
        """Flush all events so far, so that they survive if this process is killed."""
        now_s = time.monotonic()
        if now_s - self._progress_s < PROGRESS_EVERY_S:
            return
        self._progress_s = now_s
        self.directory.flush()
        if self._dataset is not None:
            self._dataset.flush_if_due()
        if self._on_progress is not None:
            self._on_progress(Progress.of(self.state, now_us))

    def finish(self, outcome: Outcome) -> Played:
        """Judge the run, and write the summary."""
        self.directory.flush()
        played = self.played(self.request, outcome, self.directory.path)
        self.directory.summarize(as_json(played.summary))
        if self._dataset is not None:
            self._dataset.summarize(played.summary)
        return played

    def fail(self) -> PlayFailed:
        """Called in an except block: a failed play has no summary, but its trace is kept."""
        if self._dataset is not None:
            self._dataset.flush()
        return PlayFailed(self.directory.keep_traceback(traceback.format_exc()))


class PlayFailed(Exception):
    """A play ended with an exception (its cause); `traceback_file` has the traceback."""

    def __init__(self, traceback_file: Path | None) -> None:
        super().__init__("the play failed")
        self.traceback_file = traceback_file


Attach = Callable[[RunListeners], object]
"""Adds further listeners before the play begins."""


def play_run(
    request: Request,
    on_progress: OnProgress | None = None,
    *,
    attach: Attach | None = None,
    liveness: bool = False,
    on_up: OnUp | None = None,
) -> Played:
    """Play and write a run directory. Exceptions are raised as PlayFailed, after the trace was
    kept. An interrupted run has a summary that says so."""
    with WrittenRun(request, on_progress, liveness=liveness) as written:
        if attach is not None:
            attach(written)
        began_s = time.monotonic()
        try:
            written.begin()
            options = _options(request, written.directory.zookeeper, written.on_progress)
            options.on_up = on_up
            return written.finish(playing.play(request.scenario, options, written.sink))
        except KeyboardInterrupt:
            wall_ms = int((time.monotonic() - began_s) * 1000)
            written.sink.close()
            now_us = written.state.clock.now_us
            return written.finish(Outcome(now_us, wall_ms, 0, interrupted=True))
        except Exception as error:
            raise written.fail() from error


def play_in_memory(
    request: Request,
    on_progress: Callable[[int], None] | None = None,
    *,
    attach: Attach | None = None,
    liveness: bool = False,
) -> Played:
    """Play without writing anything. `on_progress` gets microseconds. Raises what the play raises,
    and KeyboardInterrupt if it was interrupted."""
    listeners = RunListeners(request.scenario, liveness=liveness)
    if attach is not None:
        attach(listeners)
    outcome = playing.play(request.scenario, _options(request, None, on_progress), listeners.sink)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return listeners.played(request, outcome)


def play_without_listeners(scenario: Scenario, options: PlayOptions) -> list[AnyEvent]:
    """All events of a play without listeners. Raises as `play_in_memory` does."""
    sink = Sink()
    if playing.play(scenario, options, sink).interrupted:
        raise KeyboardInterrupt
    return sink.events


def _options(
    request: Request, data_dir: Path | None, on_progress: Callable[[int], None] | None
) -> PlayOptions:
    return PlayOptions(
        seed=request.seed,
        zookeeper=request.zookeeper,
        time_scale=request.time_scale,
        target=request.target,
        data_dir=data_dir,
        on_progress=on_progress,
        read_kafka=request.read_kafka,
    )


class Session:
    """A world with its listeners, controlled step by step: `run.bring_up()` boots the cluster. Use
    as a context manager, or call `close`."""

    def __init__(
        self,
        scenario: Scenario,
        options: PlayOptions,
        *,
        hearing: Listening = "invariants",
        liveness: bool = False,
    ) -> None:
        self.listeners = RunListeners(scenario, hearing=hearing, liveness=liveness)
        self.monitor = self.listeners.monitor
        self.world: World = make_world(scenario, options, self.listeners.sink)
        self.world.__enter__()
        self.kernel: Kernel = self.world.kernel
        self.run = Run(self.world)

    @property
    def events(self) -> list[AnyEvent]:
        """All events so far."""
        return self.listeners.sink.events

    @property
    def now_us(self) -> int:
        """Microseconds since the cluster was up."""
        return self.kernel.now - self.run.up_us

    def close(self) -> None:
        """Take the world down."""
        self.world.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _manifest(request: Request) -> dict[str, object]:
    """The content of `run.json`."""
    scenario = request.scenario
    return {
        "scenario": scenario.name,
        "source": scenario.source,
        "seed": request.seed,
        "profile": scenario.profile,
        "zookeeper": request.zookeeper,
        "time_scale": request.time_scale,
        "target": request.target,
        "guards": switch_words(scenario.guards),
        "propagation": scenario.propagation,
        "set": list(request.sets),
        "repeat": request.repeat,
    }
