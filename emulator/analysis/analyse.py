"""All tables of a data set, and the report made of them.

Owns the order: two passes over the files, whose results are kept; all tables from them, some at
a time; their results as Parquet (and CSV), and what the report needs of each run. Tables are small
whatever the data set's size. How one is computed is its own file's business, how it looks the
report's.
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
from emulator.analysis.counted import COLUMNS, counted
from emulator.analysis.dataset import Dataset
from emulator.analysis.derived import KEY, RARE_COLUMNS, few, is_small, of_kinds, rare, sharing
from emulator.analysis.errors import AnalysisError, why
from emulator.analysis.history import history
from emulator.analysis.session import interpreted
from emulator.analysis.tables import Row

AT_ONCE = 3
"""One of them may wait for what others begin with."""
PARTS = {
    "partitions": ("partition",),
    "offsets": ("partition",),
    "states": ("topic", "partition", "leader", "leader_epoch", "isr", "zk_version", "replicas"),
    "leader_and_isr_state": ("topic", "partition", "replicas", "adding_replicas"),
}
"""What is read of records and of lists of them; of some only how many there are."""
TABLES, CSV = "tables", "csv"
OnTable = Callable[[str, int, int], None]
"""Told a table that is done, how many are, and of how many."""
Look = Callable[..., Dataset]
"""`open_dataset` of the same data set; it takes `thorough`."""


class Analysis(msgspec.Struct):
    """What was found: a table by each aggregation, a row for each run, how many events."""

    tables: dict[str, pa.Table]
    runs: list[Row]
    events: int


def analyse(spark: SparkSession, dataset: Dataset, on_table: OnTable = lambda *_: None) -> Analysis:
    """Everything. AnalysisError when a file turns out to be damaged within."""
    try:
        with kept(spark, dataset) as rows:
            found = _all(spark, rows, on_table)
            return Analysis(found, runs_of(rows), dataset.rows)
    except (PySparkException, Py4JJavaError) as error:
        raise AnalysisError(f"{dataset.base}: {why(error)}") from None


def analyse_readable(
    spark: SparkSession, found: Dataset, look: Look, on_table: OnTable = lambda *_: None
) -> tuple[Dataset, Analysis]:
    """Everything; where a file that looked whole is damaged within, `look` names it: what is left
    without it, and its tables. AnalysisError."""
    try:
        return found, analyse(spark, found, on_table)
    except AnalysisError:
        rest = look(thorough=True)
        if rest.problems == found.problems:
            raise
        return rest, analyse(spark, rest, on_table)


@contextmanager
def kept(spark: SparkSession, dataset: Dataset) -> Iterator[DataFrame]:
    """All rows; what tables are made of is taken from them when it is asked for, and kept
    meanwhile."""
    rows = tables.events(spark, dataset, {*COLUMNS, *RARE_COLUMNS}, PARTS)
    with sharing(rows):
        yield rows


def _all(spark: SparkSession, rows: DataFrame, on_table: OnTable) -> dict[str, pa.Table]:
    """Two passes side by side, and what is made of many rows; then the rest."""
    wanted = aggregations()
    found: dict[str, pa.Table] = {}

    def one(name: str) -> None:
        found[name] = in_order(wanted[name].aggregate(rows).toArrow())
        on_table(name, len(found), len(wanted))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        passes = [pool.submit(derive, rows) for derive in (counted, rare)]
        many = [pool.submit(one, name) for name, of in wanted.items() if of.of_many]
        _await([*passes, *many])
        with many_queries(spark):
            rest = [pool.submit(one, name) for name, of in wanted.items() if not of.of_many]
            _await([pool.submit(history, rows), *rest])
    return {name: found[name] for name in wanted}


def _await(all_of: Iterable[Future[Any]]) -> None:
    for one in all_of:
        one.result()


def many_queries(spark: SparkSession) -> AbstractContextManager[None]:
    """Meanwhile queries of few rows are not compiled."""
    return interpreted(spark) if is_small(spark) else nullcontext()


def in_order(table: pa.Table) -> pa.Table:
    """By its texts, from the left: the same rows are the same table."""
    keys = [f.name for f in table.schema if f.type in (pa.string(), pa.int64())]
    return table.sort_by([(name, "ascending") for name in keys]) if keys else table


def runs_of(rows: DataFrame) -> list[Row]:
    """What was run and what came of it, a row per run; no `verdict`: it has no end."""
    began = of_kinds(few(rows), "run_began").select(*KEY, "seed", "replay", "traced")
    ended = of_kinds(few(rows), "run_ended").select(*KEY, "verdict", "figures", "violations")
    found = in_order(began.join(ended, [*KEY], "left").toArrow())
    listed: list[Row] = found.to_pylist()
    return listed


def write(found: Analysis, out: Path, *, csv: bool) -> None:
    """Each table as `tables/NAME.parquet`, and `csv/NAME.csv` if asked for."""
    for folder in (TABLES, CSV) if csv else (TABLES,):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name, table in found.tables.items():
        aside = out / TABLES / f".{name}.parquet.part"
        pq.write_table(table, aside)
        aside.replace(out / TABLES / f"{name}.parquet")
        if csv:
            pa_csv.write_csv(table, out / CSV / f"{name}.csv")
