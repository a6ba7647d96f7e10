"""Plays a grid on Spark executors: distributes batches, reports progress, cancels and resumes.

Owns the driver's side: the batches that are left, progress, and a clean end. `sweep.batch` plays a
batch; it tolerates retries and speculative copies. The data set's folder has the same path on the
driver and on all executors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread

import msgspec
from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from emulator.analysis.errors import AnalysisError, why
from emulator.analysis.sweep.batch import (
    BatchResult,
    Work,
    completed_batches,
    play_batch,
    violated_runs,
)
from emulator.analysis.sweep.grid import Batch, Grid, batches
from emulator.scenario.errors import UserError
from emulator.trace.untrusted_json import decode_untrusted

MANIFEST = "sweep.json"
GROUP = "isr-sweep"
LOOK_EVERY_S = 0.25


class Progress(msgspec.Struct):
    """Progress of a sweep; `before` runs were complete when it was resumed."""

    runs: int
    of: int
    before: int
    violated: int
    seconds: float

    @property
    def per_second(self) -> float:
        return (self.runs - self.before) / max(self.seconds, 1e-6)

    @property
    def left_s(self) -> float | None:
        """None: no run has finished yet."""
        return (self.of - self.runs) / self.per_second if self.runs > self.before else None


OnProgress = Callable[[Progress], None]


class Manifest(msgspec.Struct, frozen=True):
    """`sweep.json`: the grid of a data set."""

    digest: str
    grid: Grid


_MANIFEST = msgspec.json.Decoder(Manifest)


def prepare(grid: Grid, base: Path, *, resume: bool) -> list[Batch]:
    """The batches that are left. UserError: the folder belongs to another sweep or has other
    files."""
    file = base / MANIFEST
    mine = Manifest(grid.digest(), grid)
    if resume and not file.exists():
        raise UserError(f"--resume: {base} has no {MANIFEST}: no sweep was started there")
    if resume:
        try:
            before = decode_untrusted(file.read_bytes(), _MANIFEST)
        except (OSError, msgspec.DecodeError) as error:
            raise UserError(f"--resume: {file} is damaged ({error}); use another --out") from None
        if before.digest != mine.digest:
            raise UserError(f"--resume: {file} belongs to another grid, scenario or version of isr")
    elif base.exists() and any(base.iterdir()):
        raise UserError(f"--out {base}: is not empty; use --resume to continue its sweep")
    try:
        base.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(mine), indent=2))
    except OSError as error:
        raise UserError(f"--out {base}: {error.strerror}") from None
    complete = completed_batches(base)
    return [batch for batch in batches(grid) if batch.number not in complete]


def sweep(
    context: SparkContext,
    grid: Grid,
    base: Path,
    left: list[Batch],
    on_progress: OnProgress,
    work: Work = play_batch,
) -> None:
    """Play the batches that are left. KeyboardInterrupt cancels the tasks; complete batches
    stay."""
    counted = _ProgressCounter(grid, base, left)
    job = _Job(context, partial(work, grid, base), left)
    try:
        while not job.over.wait(LOOK_EVERY_S):
            on_progress(counted.now(job.finished()))
    except KeyboardInterrupt:
        context.cancelJobGroup(GROUP)
        job.over.wait(30)
        raise
    if job.failure is not None:
        raise AnalysisError(f"the sweep failed: {why(job.failure)}; use --resume to continue it")
    on_progress(counted.now(job.finished()))


class _ProgressCounter:
    """Counts finished runs: those from before, and those of finished tasks."""

    def __init__(self, grid: Grid, base: Path, left: list[Batch]) -> None:
        self.of = grid.runs
        self.before = grid.runs - sum(len(batch.seeds) for batch in left)
        self._violated_before = violated_runs(base) if self.before else 0
        self._began_s = time.monotonic()

    def now(self, finished: list[BatchResult]) -> Progress:
        runs = self.before + sum(one.runs for one in finished)
        violated = self._violated_before + sum(one.violated for one in finished)
        return Progress(runs, self.of, self.before, violated, time.monotonic() - self._began_s)


class _Job:
    """The Spark job, in its own thread; tasks report results through an accumulator."""

    def __init__(
        self, context: SparkContext, play: Callable[[Batch], BatchResult], left: list[Batch]
    ) -> None:
        self.over = Event()
        self.failure: BaseException | None = None
        self._context, self._left = context, left
        self._finished = context.accumulator([], _ListAccumulator())
        self._play = partial(_play_and_report, play, self._finished)
        Thread(target=self._run, name=GROUP, daemon=True).start()

    def finished(self) -> list[BatchResult]:
        """The results; a batch that ran twice counts once."""
        return list({one.number: one for one in self._finished.value}.values())

    def _run(self) -> None:
        try:
            if self._left:
                self._context.setJobGroup(GROUP, "isr sweep", interruptOnCancel=True)
                rdd = self._context.parallelize(self._left, len(self._left))
                rdd.foreach(self._play)
        except BaseException as error:  # noqa: BLE001
            self.failure = error
        finally:
            self.over.set()


def _play_and_report(
    play: Callable[[Batch], BatchResult], finished: Accumulator[list[BatchResult]], batch: Batch
) -> None:
    finished.add([play(batch)])


class _ListAccumulator(AccumulatorParam[list[BatchResult]]):
    def zero(self, value: list[BatchResult]) -> list[BatchResult]:
        return []

    def addInPlace(  # noqa: N802
        self, value1: list[BatchResult], value2: list[BatchResult]
    ) -> list[BatchResult]:
        return [*value1, *value2]
