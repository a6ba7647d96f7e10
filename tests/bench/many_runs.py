"""Traces at scale: how long a report takes, tables beside a bare scan, a sweep beside one process.

The data set is one simulated run written many times under other names (what Spark reads is the
same), and one giant run among them, so that skew is there too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import session, tables
from emulator.analysis.aggregations import Aggregation, aggregations
from emulator.analysis.analyse import analyse, kept, write
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.report import write_report
from emulator.analysis.writer import write_events, write_runs
from emulator.runtime import rows
from emulator.runtime.perform import Request, perform_in_memory
from emulator.scenario import shipped
from emulator.scenario.load import load
from emulator.sweep.batch import play_batch
from emulator.sweep.grid import BATCH_RUNS, batches, grid_of, points
from emulator.sweep.spark import prepare, sweep
from tests.bench.figures import Figure

EVENTS = 1_000_000
GROWTH = (1_000_000, 10_000_000, 50_000_000)
TURNS = 3
SWEPT = 160


def figures() -> list[Figure]:
    with TemporaryDirectory() as folder:
        base = Path(folder) / "data"
        runs = make(base, EVENTS)
        scope = f"{EVENTS:,} events, {runs} runs, one of them a fifth of all"
        return [_report(base, scope), *_each(base, scope), _sweep(Path(folder))]


def growth_figures() -> list[Figure]:
    """Seconds per million events, each size held against the smallest."""
    found: list[Figure] = []
    for events in GROWTH:
        with TemporaryDirectory() as folder:
            make(Path(folder), events)
            spark = _started(events)
            began_s = time.monotonic()
            analyse(spark, open_dataset(Path(folder)))
            seconds = (time.monotonic() - began_s) * 1e6 / events
            spark.stop()
        first = found[0].value if found else None
        found.append(
            Figure(
                what=f"all tables, {events:,} events",
                value=seconds,
                unit="s per million",
                scope="Spark's start not counted",
                against="the smallest",
                of=first,
            )
        )
    return found


def make(base: Path, events: int) -> int:
    """A data set of about so many events; how many runs it has."""
    scenario = load(shipped.find("shrink-and-expand"))
    summary, trace = perform_in_memory(Request(scenario=scenario, seed=1, zookeeper="simulated"))
    began, ended = rows.began(scenario, 1), rows.ended(summary)
    key = RunKey(scenario.name, "2.6", "zk", "")
    small = int(0.8 * events / len(trace))
    keys = [key._replace(run=f"{number:06}") for number in range(small)]
    for one in keys:
        write_events(base, one, "", trace)
    giant = key._replace(run="giant")
    write_events(base, giant, "", _again(trace, events - small * len(trace)))
    for number, some in enumerate(_batches([*keys, giant])):
        write_runs(base, f"batch-{number:06}", dict.fromkeys(some, (began, ended)))
    return len(keys) + 1


def _batches(keys: list[RunKey]) -> Iterator[list[RunKey]]:
    """As a sweep's tasks leave them."""
    for start in range(0, len(keys), BATCH_RUNS):
        yield keys[start : start + BATCH_RUNS]


def _again(trace: list[Any], events: int) -> Iterator[Any]:
    """The same story one after the other, as one run."""
    last_t = trace[-1].t
    for number in range(events):
        turn, place = divmod(number, len(trace))
        event = trace[place]
        yield msgspec.structs.replace(event, seq=number, t=event.t + turn * last_t)


def _started(rows_: int) -> SparkSession:
    return session.start("local[2]", session.sized(rows_))


def _report(base: Path, scope: str) -> Figure:
    began_s = time.monotonic()
    found = open_dataset(base)
    spark = _started(found.rows)
    made = analyse(spark, found)
    out = base.parent / "report"
    write(made, out, csv=False)
    write_report(made, out, "bench")
    seconds = time.monotonic() - began_s
    spark.stop()
    return Figure(
        what="report, Spark's start included", value=seconds, unit="s", scope=scope, most=15
    )


def _each(base: Path, scope: str) -> Iterator[Figure]:
    """Each table from the cached rows, beside a bare scan of the files with one groupBy."""
    found = open_dataset(base)
    spark = _started(found.rows)
    plain = tables.events(spark, found)
    bare = _median(lambda: plain.groupBy("kind").count().toArrow())
    with kept(spark, found) as all_rows:
        for name, one in aggregations().items():
            seconds = _median(partial(_collect, one, all_rows))
            yield Figure(
                what=f"table {name}",
                value=seconds,
                unit="s",
                scope=scope,
                against="a Parquet scan with one groupBy, s",
                of=bare,
                most=2 * bare,
            )
    spark.stop()


def _collect(one: Aggregation, rows_: DataFrame) -> object:
    return one.aggregate(rows_).toArrow()


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(TURNS):
        began_s = time.monotonic()
        work()
        times.append(time.monotonic() - began_s)
    return statistics.median(times)


def _sweep(folder: Path) -> Figure:
    """Runs per second on two executors, once started, beside one process without Spark."""
    source = shipped.find("shrink-and-expand")
    grid = grid_of(source, source.read_text(), points([], (), (), ()), 1, SWEPT)
    some = list(batches(grid))[:2]
    play_batch(grid, folder / "warm", some[0])
    with _timed() as one:
        play_batch(grid, folder / "one", some[1])
    single = len(some[1].seeds) / one()
    spark = _started(0)
    sweep(spark.sparkContext, grid, folder / "warm-spark", some, lambda _: None)
    left = prepare(grid, folder / "swept", resume=False)
    with _timed() as took:
        sweep(spark.sparkContext, grid, folder / "swept", left, lambda _: None)
    spark.stop()
    return Figure(
        what="sweep on two executors",
        value=SWEPT / took(),
        unit="runs/s",
        scope=f"{SWEPT} runs of shrink-and-expand, traces kept, executors started",
        against="twice one process",
        of=2 * single,
        least=0.7,
    )


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    began_s = time.monotonic()
    ended: list[float] = []
    yield lambda: ended[0]
    ended.append(time.monotonic() - began_s)
