"""A data set that still grows: the same tables and report, kept up to date.

Owns the stream. Structured Streaming finds new files and, in its checkpoint, remembers which it has
given out; each micro-batch writes down the names of its files under its number, so that a batch
that is given out twice counts once, and one that was not finished is given out again. The tables
are made of all files written down so far, by the same code as of a data set that is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from emulator.analysis.analyse import Analysis, analyse, write
from emulator.analysis.dataset import EVENTS, RUNS, Dataset
from emulator.analysis.report import write_report
from emulator.trace.columns import schema_ddl

CHECKPOINT, FILES = "checkpoint", "files"
LOOK_EVERY = "2 seconds"
OnUpdate = Callable[[Analysis], None]


def follow(
    spark: SparkSession, base: Path, out: Path, on_update: OnUpdate, *, once: bool = False
) -> StreamingQuery:
    """Begin, or go on where a stream to `out` was. `once`: with what is there, and no longer."""
    (out / FILES).mkdir(parents=True, exist_ok=True)
    for part in (EVENTS, RUNS):
        (base / part).mkdir(parents=True, exist_ok=True)
    rows = _names(spark, base / EVENTS).unionByName(_names(spark, base / RUNS))

    def take(batch: DataFrame, number: int) -> None:
        _write_down(batch, out / FILES / f"{number:08}.json")
        _renew(batch.sparkSession, base, out, on_update)

    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(out / CHECKPOINT))
    trigger = {"availableNow": True} if once else {"processingTime": LOOK_EVERY}
    return writer.trigger(**trigger).start()


def _names(spark: SparkSession, folder: Path) -> DataFrame:
    """Of the files that hold the rows; their columns are not read."""
    stream = spark.readStream.schema(schema_ddl()).option("basePath", str(folder))
    return stream.parquet(str(folder)).select(F.col("_metadata.file_path").alias("file"))


def _write_down(batch: DataFrame, into: Path) -> None:
    """Under the batch's number: a second time is the same file."""
    names = sorted(_path(row.file) for row in batch.distinct().collect())
    aside = into.with_suffix(".part")
    aside.write_bytes(msgspec.json.encode(names))
    aside.replace(into)


def _path(uri: str) -> str:
    """Spark names a file by its URI."""
    return unquote(urlparse(uri).path)


def known_files(out: Path) -> list[Path]:
    """All files that were written down, each once."""
    found: set[str] = set()
    for file in (out / FILES).glob("*.json"):
        found.update(msgspec.json.decode(file.read_bytes(), type=list[str]))
    return [Path(name) for name in sorted(found)]


def _renew(spark: SparkSession, base: Path, out: Path, on_update: OnUpdate) -> None:
    files = known_files(out)
    root = (base / EVENTS).resolve()
    inside = [file for file in files if file.is_relative_to(root)]
    others = [file for file in files if not file.is_relative_to(root)]
    made = analyse(spark, Dataset(base.resolve(), inside, others))
    write(made, out, csv=False)
    write_report(made, out, f"Analysis of {base.resolve().name}, still growing")
    on_update(made)
