"""A data set as one DataFrame of rows.

Owns how files become rows: the explicit schema, directories as columns, what is left out of those
that cannot be used. Every aggregation begins here. Rows of runs and rows of events are in one
table, told apart by `kind`.
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
"""What an aggregate is of: the runs that only their seeds tell apart."""

RUN = PARTITIONED_BY

Row = dict[str, Any]
"""A row of a table, by column."""


def events(
    spark: SparkSession,
    dataset: Dataset,
    only: Collection[str] = (),
    parts: Mapping[str, Collection[str]] = {},
) -> DataFrame:
    """All rows that can be used; of their columns all, or these, and of some only these parts."""
    columns = schema_ddl(only, parts)
    rows = read(spark, dataset.base, dataset.events, dataset.runs, columns)
    if dataset.version < DATASET_VERSION:  # the same columns; some kinds had other names
        names: dict[bool | float | str, bool | float | str | None] = {  # noqa: C416
            older: newer for older, newer in OLDER_KINDS.items()
        }
        rows = rows.replace(names, subset=["kind"])
    return rows


def read(
    spark: SparkSession,
    base: Path,
    pieces: Sequence[Path],
    runs: Sequence[Path],
    columns: str,
) -> DataFrame:
    """The rows of these files; what a file lacks is null."""
    reader = spark.read.schema(columns)
    found = reader.parquet(*map(str, runs)) if runs else spark.createDataFrame([], columns)
    if not pieces:
        return found
    inside = reader.option("basePath", str(base / EVENTS)).parquet(*map(str, pieces))
    beyond_ascii = any(not "".join(key_of(base, piece)).isascii() for piece in pieces)
    return found.unionByName(_named_right(inside) if beyond_ascii else inside)


def _named_right(rows: DataFrame) -> DataFrame:
    """Spark takes each byte that a directory's name escapes for a character."""
    return rows.withColumns(
        {
            name: F.decode(F.encode(name, "ISO-8859-1"), "UTF-8")
            for name in RUN
            if name in rows.columns
        }
    )
