"""Traces at scale: how long a report takes, tables beside a bare scan, a sweep beside one process.

The data set is one simulated run written many times under other names (what Spark reads is the
same), and one giant run among them, so that skew is there too. Beside the clock's seconds stand
those of the processors, driver and JVM together: what else the machine does moves them less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import jvm_archive, session, tables
from emulator.analysis.aggregations import Aggregation, aggregations
from emulator.analysis.analyse import analyse, cached_rows, many_queries
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.derived import rare_rows
from emulator.analysis.event_counts import event_counts
from emulator.analysis.history import history
from emulator.analysis.sweep.batch import play_batch
from emulator.analysis.sweep.grid import BATCH_RUNS, batches, grid_of, points
from emulator.analysis.sweep.spark import prepare, sweep
from emulator.analysis.writer import write_events, write_runs
from emulator.runs import dataset_rows as rows
from emulator.runs.session import Request, play_in_memory
from emulator.scenario import shipped
from emulator.scenario.load import load
from tests.spark.stages import stages
from tools.bench import processor
from tools.bench.figures import Figure, median
from tools.bench.hazards import PROGRAM
from zk.real.server import find_java

EVENTS = 1_000_000
GROWTH = (1_000_000, 5_000_000, 10_000_000)
FAR = (10_000_000, 50_000_000)
NOT_LINEAR = 1.25
TURNS, REPORTS = 5, 3
SWEPT = 160
SMALL_RUNS = 2_000
SMALL_EVENTS = 1_000
HEAVY = 0.05
"""Of all processor time: a stage that takes less has nothing to share."""


def report_figures(events: int = EVENTS, turns: int = REPORTS) -> list[Figure]:
    with _data(events) as (base, scope):
        return _report(base, scope, turns)


def table_figures(
    events: int = EVENTS, turns: int = TURNS, only: Collection[str] = ()
) -> list[Figure]:
    """Of all tables, or `only` these."""
    specs = {name: one for name, one in aggregations().items() if not only or name in only}
    with _data(events) as (base, scope):
        return list(_each(base, scope, turns, specs))


def sweep_figures(runs: int = SWEPT, text: str = "") -> list[Figure]:
    """`text`: another scenario than the usual one."""
    source = shipped.find("shrink-and-expand")
    with TemporaryDirectory() as folder:
        return [_sweep(Path(folder), runs, source, text or source.read_text())]


@contextmanager
def _data(events: int) -> Iterator[tuple[Path, str]]:
    """A data set of so many events, for a while, and what to say of it."""
    with TemporaryDirectory() as folder:
        base = Path(folder) / "data"
        runs = make(base, events)
        yield base, f"{events:,} events, {runs} runs, one of them a fifth of all"


def growth_figures(sizes: Sequence[int] = GROWTH) -> list[Figure]:
    """Seconds per million events, each size held against the one before."""
    figures: list[Figure] = []
    for events in sizes:
        with _data(events) as (base, scope):
            dataset = open_dataset(base)
            spark = _started(events)
            with _timed() as took, processor.spent(_java(spark)) as used:
                analyse(spark, dataset)
            spark.stop()
        millions = events / 1e6
        before = figures[-1].value if figures else None
        figures += [
            Figure(what="all tables", value=took() / millions, unit="s per million", scope=scope),
            Figure(
                what="all tables, processor time",
                value=used() / millions,
                unit="s per million",
                scope=f"{scope}; Spark's start not counted",
                reference="the size before",
                of=before,
                most=None if before is None else NOT_LINEAR * before,
            ),
        ]
        print(f"{events:,}: {took():.1f} s, processors {used():.1f} s", file=sys.stderr, flush=True)
    return figures


def skew_figures(small_runs: int = SMALL_RUNS) -> list[Figure]:
    """One run with half of all events among thousands of small ones: the largest share that one
    task has of a stage that takes long."""
    events = 2 * small_runs * SMALL_EVENTS
    with TemporaryDirectory() as folder:
        base = Path(folder)
        make(base, events, small_share=0.5, small_events=SMALL_EVENTS)
        spark = _started(events)
        analyse(spark, open_dataset(base))
        ran = stages(spark)
        spark.stop()
    whole_s = sum(sum(one.cpu_s) for one in ran)
    heavy = [one for one in ran if sum(one.cpu_s) > HEAVY * whole_s]
    share, worst = max((max(one.cpu_s) / sum(one.cpu_s), one) for one in heavy)
    last_s = sum(max(one.cpu_s) for one in ran)
    scope = f"{events:,} events in {small_runs:,} runs of {SMALL_EVENTS:,} and one of all the rest"
    return [
        Figure(
            what="largest share that one task has of a stage",
            value=share,
            unit="",
            scope=f"{scope}; of {len(heavy)} stages that take {HEAVY:.0%} of all or more; that one "
            f"has {len(worst.cpu_s)} tasks",
            most=0.5,
        ),
        Figure(
            what="each stage's longest task, one after the other",
            value=last_s,
            unit="s",
            scope=f"{scope}; {len(ran)} stages",
            reference="processor time of all tasks, s",
            of=whole_s,
            most=0.5 * whole_s,
        ),
    ]


def make(
    base: Path, events: int, *, small_share: float = 0.8, small_events: int | None = None
) -> int:
    """A data set of so many events, a share of them in small runs (whole ones, or the beginning),
    the rest in one; how many runs it has."""
    scenario = load(shipped.find("shrink-and-expand"))
    played = play_in_memory(Request(scenario=scenario, seed=1))
    summary, trace = played.summary, played.events
    began, ended = rows.began(scenario, 1), rows.ended(summary)
    key = RunKey(scenario.name, "2.6", "zk", "")
    beginning = trace[:small_events]
    small = int(small_share * events / len(beginning))
    keys = [key._replace(run=f"{number:06}") for number in range(small)]
    for one in keys:
        write_events(base, one, "", beginning)
    giant = key._replace(run="giant")
    write_events(base, giant, "", _again(trace, events - small * len(beginning)))
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


def _java(spark: SparkSession) -> int:
    """The driver's JVM."""
    return int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def _report(base: Path, scope: str, turns: int) -> list[Figure]:
    """As a user has it: a process of its own, from its start to its end."""
    command = [sys.executable, "-c", PROGRAM, "analyze", str(base), "--spark-master", "local[2]"]
    archive = jvm_archive.place(Path(find_java()))
    has_archive = "with" if archive.exists() else "without"
    scope_of_process = (
        f"{scope}; `isr analyze` in a process of its own, {has_archive} an archive of classes"
    )
    took_s, used_s = min(processor.run(command) for _ in range(turns))
    return [
        Figure(
            what="report",
            value=took_s,
            unit="s",
            scope=f"{scope_of_process}, best of {turns}",
            most=15,
        ),
        Figure(what="report, processor time", value=used_s, unit="s", scope="the same, with Java"),
    ]


def _each(base: Path, scope: str, turns: int, specs: Mapping[str, Aggregation]) -> Iterator[Figure]:
    """Each table from the kept rows, in turns with a bare scan of the files with one groupBy."""
    dataset = open_dataset(base)
    spark = _started(dataset.rows)

    def plain() -> DataFrame:
        """A new one each time: of one that has run before, Spark keeps what it shuffled."""
        return tables.events(spark, dataset).groupBy("kind").count()

    plain().toArrow()
    with cached_rows(spark, dataset) as all_rows:
        event_counts(all_rows), rare_rows(all_rows), history(all_rows)
        for name, one in specs.items():
            with nullcontext() if one.of_many else many_queries(spark):
                both = [_turn(plain, one, all_rows) for _ in range(turns)]
            bare = median(scan for scan, _ in both)
            yield Figure(
                what=f"table {name}",
                value=median(table for _, table in both),
                unit="s",
                scope=f"{scope}; median of {turns} turns",
                reference="a Parquet scan with one groupBy, s",
                of=bare,
                most=2 * bare,
            )
    spark.stop()


def _turn(
    plain: Callable[[], DataFrame], one: Aggregation, rows_: DataFrame
) -> tuple[float, float]:
    """Seconds of a bare scan, and of a table."""
    with _timed() as scan:
        plain().toArrow()
    with _timed() as table:
        one.aggregate(rows_).toArrow()
    return scan(), table()


def _sweep(folder: Path, runs: int, source: Path, text: str) -> Figure:
    """Runs per second on two executors, once started, beside one process without Spark."""
    grid = grid_of(source, text, points([], (), (), ()), 1, runs)
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
        value=runs / took(),
        unit="runs/s",
        scope=f"{runs} runs of {grid.name}, traces kept, executors started",
        reference="twice one process",
        of=2 * single,
        least=0.7,
    )


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    began_s = time.monotonic()
    ended: list[float] = []
    yield lambda: ended[0]
    ended.append(time.monotonic() - began_s)
