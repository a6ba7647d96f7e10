"""One task of a sweep: some seeds of one point, played, and written into the data set.

Owns what a task leaves: traces of its runs (all, or those with a broken invariant), and last of all
one file of `runs/` that says that the batch is done. Played again, by a retry or a speculative
copy, it leaves the same. It must not know how tasks are given out.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable
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
"""Of computing, for one run. What comes of it must not depend on the machine: only a loop without
end takes so long."""


class Done(msgspec.Struct, frozen=True):
    """What the driver hears of a batch."""

    number: int
    runs: int
    violated: int
    events: int


Work = Callable[[Grid, Path, Batch], Done]


def play_batch(grid: Grid, base: Path, batch: Batch) -> Done:
    """Play it, unless it is done."""
    scenario = grid.scenario(batch.point)
    found: dict[RunKey, tuple[RunBegan, RunEnded]] = {}
    events = 0
    for seed in batch.seeds:
        key = key_of(scenario, run_name(batch.point, seed))
        ended, trace = _play(scenario, seed)
        wanted = grid.traces == "all" or (grid.traces == "violations" and ended.violations)
        began = _began(grid, batch, scenario, seed, traced=bool(wanted and trace))
        if began.traced:
            write_events(base, key, setting_of(began), trace)
        found[key] = began, ended
        events += len(trace)
    write_runs(base, batch.name, found)
    violated = sum(bool(ended.violations) for _, ended in found.values())
    return Done(batch.number, len(found), violated, events)


def done(base: Path) -> set[int]:
    """The batches that are complete."""
    files = (base / RUNS).glob("batch-*.parquet")
    return {int(file.stem.removeprefix("batch-")) for file in files}


def violated_runs(base: Path) -> int:
    """Of the runs that are complete, those with a broken invariant."""
    found = 0
    for file in (base / RUNS).glob("batch-*.parquet"):
        column = pq.read_table(file, columns=["violations"], partitioning=None)["violations"]
        found += sum(bool(one) for one in column.to_pylist())
    return found


def _play(scenario: LoadedScenario, seed: int) -> tuple[RunEnded, list[AnyEvent]]:
    """One run. A fault of ours is what came of this run; the sweep goes on."""
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
