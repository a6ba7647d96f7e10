"""Reads a data set as one DataFrame.

Owns how files become rows: the explicit schema, and the columns from directory names. Every
aggregation starts here. Rows of runs and rows of events are in one table; `kind` distinguishes
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from emulator.analysis.dataset import EVENTS, Dataset, key_of
from emulator.trace.columns import DATASET_VERSION, PARTITIONED_BY, schema_ddl
from emulator.trace.reader import OLDER_KINDS

GROUP = ("scenario", "profile", "propagation", "setting")
"""The columns of a group: runs that differ only in their seeds."""

RUN = PARTITIONED_BY

Row = dict[str, Any]
"""A row of a table, by column."""


def events(
    spark: SparkSession,
    dataset: Dataset,
    only: Collection[str] = (),
    parts: Mapping[str, Collection[str]] = {},
) -> DataFrame:
    """All usable rows, with all columns or `only` these. `parts`: the fields read of some
    columns."""
    columns = schema_ddl(only, parts)
    rows = read(spark, dataset.base, dataset.events, dataset.runs, columns)
    if dataset.version < DATASET_VERSION:  # the same columns; some kinds had other names
        rows = rows.replace([*OLDER_KINDS], [*OLDER_KINDS.values()], subset=["kind"])
    return rows


def read(
    spark: SparkSession,
    base: Path,
    pieces: Sequence[Path],
    runs: Sequence[Path],
    columns: str,
) -> DataFrame:
    """The rows of these files; columns that a file lacks are null."""
    reader = spark.read.schema(columns)
    run_rows = reader.parquet(*map(str, runs)) if runs else spark.createDataFrame([], columns)
    if not pieces:
        return run_rows
    event_rows = reader.option("basePath", str(base / EVENTS)).parquet(*map(str, pieces))
    is_escaped = any(not "".join(key_of(base, piece)).isascii() for piece in pieces)
    if is_escaped:  # Spark reads each escaped byte of a directory's name as one character.
        names = [name for name in RUN if name in event_rows.columns]
        event_rows = event_rows.withColumns(
            {name: F.decode(F.encode(name, "ISO-8859-1"), "UTF-8") for name in names}
        )
    return run_rows.unionByName(event_rows)
