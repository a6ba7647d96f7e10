"""One task of a sweep: plays some seeds of one point and writes them into the data set.

Owns a task's output: traces of its runs (all, or those with a violated invariant), and finally one
file in `runs/` that marks the batch as complete. A retry or a speculative copy writes the same
files. It does not know how tasks are distributed.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from emulator.analysis.dataset import RUNS, RunKey
from emulator.analysis.sweep.grid import Batch, Grid, run_name
from emulator.analysis.sweep.recording import key_of
from emulator.analysis.writer import setting_of, write_events, write_runs
from emulator.runs import dataset_rows as rows
from emulator.runs.broken import Broken
from emulator.runs.play import SIMULATED
from emulator.runs.session import Request, play_in_memory
from emulator.scenario.load import LoadedScenario
from emulator.search.fuzz.trial import EXCEPTION, alarm
from emulator.trace.events import AnyEvent
from emulator.trace.rows import RunBegan, RunEnded

CPU_S_MAX = 1200
"""The limit on CPU time of one run. Only an endless loop takes so long on any machine, so the limit
does not make outcomes depend on the machine."""


class BatchResult(msgspec.Struct, frozen=True):
    """A finished batch, as reported to the driver."""

    number: int
    runs: int
    violated: int
    events: int


Work = Callable[[Grid, Path, Batch], BatchResult]


def play_batch(grid: Grid, base: Path, batch: Batch) -> BatchResult:
    """Play a batch and write its files."""
    scenario = grid.scenario(batch.point)
    outcomes: dict[RunKey, tuple[RunBegan, RunEnded]] = {}
    events = 0
    for seed in batch.seeds:
        key = key_of(scenario, run_name(batch.point, seed))
        ended, trace = _play(scenario, seed)
        keeps_trace = grid.traces == "all" or (grid.traces == "violations" and ended.violations)
        began = _began(grid, batch, scenario, seed, traced=bool(keeps_trace and trace))
        if began.traced:
            write_events(base, key, setting_of(began), trace)
        outcomes[key] = began, ended
        events += len(trace)
    write_runs(base, batch.name, outcomes)
    violated = sum(bool(ended.violations) for _, ended in outcomes.values())
    return BatchResult(batch.number, len(outcomes), violated, events)


def completed_batches(base: Path) -> set[int]:
    """The numbers of the complete batches."""
    files = (base / RUNS).glob("batch-*.parquet")
    return {int(file.stem.removeprefix("batch-")) for file in files}


def violated_runs(base: Path) -> int:
    """The number of complete runs with a violated invariant."""
    violated = 0
    for file in (base / RUNS).glob("batch-*.parquet"):
        column = pq.read_table(
            file, columns=["violations"], partitioning=None, page_checksum_verification=True
        )["violations"]
        violated += sum(bool(one) for one in column.to_pylist())
    return violated


def _play(scenario: LoadedScenario, seed: int) -> tuple[RunEnded, Sequence[AnyEvent]]:
    """Play one run. An internal error becomes this run's outcome; the sweep continues."""
    request = Request(scenario=scenario, seed=seed)
    try:
        with alarm(CPU_S_MAX):
            played = play_in_memory(request)
    except Exception as error:  # noqa: BLE001
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
        return rows.ended_with([Broken(EXCEPTION, text)], 0, cut_short=True), []
    return rows.ended(played.summary), played.events


def _began(
    grid: Grid, batch: Batch, scenario: LoadedScenario, seed: int, *, traced: bool
) -> RunBegan:
    point = batch.point
    sets = [word for pair in point.sets for word in ("--set", pair)]
    where = ["--seed", f"{seed:#x}", "--zookeeper", SIMULATED]
    played = grid.source if Path(grid.source).suffix == ".yaml" else grid.name
    words = ["isr", "run", played, *where, *sets, *point.chosen.words()]
    return rows.began(scenario, seed, sets=point.sets, replay=shlex.join(words), traced=traced)
