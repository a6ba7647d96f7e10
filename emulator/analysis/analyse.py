"""Computes all tables of a data set.

Owns the order: two passes over the files, whose results are cached; then all tables, a few at a
time. Writes the tables as Parquet (and CSV), and collects the runs for the report. A table is small
however large the data set is. Each aggregation has its own file; `report` owns the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import tables
from emulator.analysis.aggregations import aggregations
from emulator.analysis.dataset import Dataset
from emulator.analysis.derived import (
    KEY,
    RARE_COLUMNS,
    caching,
    infrequent_rows,
    is_small,
    of_kinds,
    rare_rows,
)
from emulator.analysis.errors import AnalysisError, why
from emulator.analysis.event_counts import COLUMNS, event_counts
from emulator.analysis.history import history
from emulator.analysis.session import interpreted
from emulator.analysis.tables import Row

AT_ONCE = 3
"""Tables computed at the same time. One of them may wait for a cached pass."""
PARTS = {
    "partitions": ("partition",),
    "offsets": ("partition",),
    "states": ("topic", "partition", "leader", "leader_epoch", "isr", "zk_version", "replicas"),
    "leader_and_isr_state": ("topic", "partition", "replicas", "adding_replicas"),
}
"""The fields read from records and lists of records. Some lists are only counted."""
TABLES, CSV = "tables", "csv"
OnTable = Callable[[str, int, int], None]
"""Called with a finished table's name, the number of finished tables, and the total."""
OpenAgain = Callable[..., Dataset]
"""`open_dataset` for the same data set; accepts `thorough`."""


class Analysis(msgspec.Struct):
    """A table per aggregation, a row per run, and the number of events."""

    tables: dict[str, pa.Table]
    runs: list[Row]
    events: int


def analyse(spark: SparkSession, dataset: Dataset, on_table: OnTable = lambda *_: None) -> Analysis:
    """Compute all tables. AnalysisError: a file's data pages are damaged."""
    try:
        with cached_rows(spark, dataset) as rows:
            results = _all(spark, rows, on_table)
            return Analysis(results, runs_of(rows), dataset.rows)
    except (PySparkException, Py4JJavaError) as error:
        raise AnalysisError(f"{dataset.base}: {why(error)}") from None


def analyse_readable(
    spark: SparkSession,
    dataset: Dataset,
    open_again: OpenAgain,
    on_table: OnTable = lambda *_: None,
) -> tuple[Dataset, Analysis]:
    """Compute all tables. If a file with an intact footer has damaged data, reopen the data set
    without it and try again. Returns the data set that was used. AnalysisError."""
    try:
        return dataset, analyse(spark, dataset, on_table)
    except AnalysisError:
        readable = open_again(thorough=True)
        if readable.problems == dataset.problems:
            raise
        return readable, analyse(spark, readable, on_table)


@contextmanager
def cached_rows(spark: SparkSession, dataset: Dataset) -> Iterator[DataFrame]:
    """All rows. Intermediate results are computed on first use and cached until the end."""
    rows = tables.events(spark, dataset, {*COLUMNS, *RARE_COLUMNS}, PARTS)
    with caching(rows):
        yield rows


def _all(spark: SparkSession, rows: DataFrame, on_table: OnTable) -> dict[str, pa.Table]:
    """Both passes and the tables over many rows in parallel; then the remaining tables."""
    specs = aggregations()
    results: dict[str, pa.Table] = {}

    def compute(name: str) -> None:
        results[name] = in_order(specs[name].aggregate(rows).toArrow())
        on_table(name, len(results), len(specs))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        passes = [pool.submit(derive, rows) for derive in (event_counts, rare_rows)]
        large = [pool.submit(compute, name) for name, of in specs.items() if of.of_many]
        _await([*passes, *large])
        with many_queries(spark):
            small = [pool.submit(compute, name) for name, of in specs.items() if not of.of_many]
            _await([pool.submit(history, rows), *small])
    return {name: results[name] for name in specs}


def _await(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.result()


def many_queries(spark: SparkSession) -> AbstractContextManager[None]:
    """In this context Spark interprets queries of a small data set instead of compiling them."""
    return interpreted(spark) if is_small(spark) else nullcontext()


def in_order(table: pa.Table) -> pa.Table:
    """Sorted by text and integer columns from the left, so that equal rows give equal tables."""
    keys = [f.name for f in table.schema if f.type in (pa.string(), pa.int64())]
    return table.sort_by([(name, "ascending") for name in keys]) if keys else table


def runs_of(rows: DataFrame) -> list[Row]:
    """A row per run: what was run, and its outcome. `verdict` is null if the run has no end."""
    began = of_kinds(infrequent_rows(rows), "run_began").select(*KEY, "seed", "replay", "traced")
    ended = of_kinds(infrequent_rows(rows), "run_ended").select(
        *KEY, "verdict", "figures", "violations"
    )
    joined = in_order(began.join(ended, [*KEY], "left").toArrow())
    runs: list[Row] = joined.to_pylist()
    return runs


def write(analysis: Analysis, out: Path, *, csv: bool) -> None:
    """Write each table as `tables/NAME.parquet`; with `csv` also as `csv/NAME.csv`."""
    for folder in (TABLES, CSV) if csv else (TABLES,):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name, table in analysis.tables.items():
        aside = out / TABLES / f".{name}.parquet.part"
        pq.write_table(table, aside, write_page_checksum=True)
        aside.replace(out / TABLES / f"{name}.parquet")
        if csv:
            pa_csv.write_csv(table, out / CSV / f"{name}.csv")
