"""A data set that still grows: the same tables and report, kept up to date.

Owns the stream. Structured Streaming finds new files and, in its checkpoint, remembers which it has
given out; it opens none of them. Each micro-batch writes down the names of its files under its
number, so that a batch that is given out twice counts once, and one that was not finished is given
out again. The tables are made of all files written down so far, by the same look at them and the
same code as of a data set that is whole; a run may still go on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from urllib.parse import unquote, urlparse

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from emulator.analysis.analyse import Analysis, analyse_readable, write
from emulator.analysis.dataset import EVENTS, RUNS, Dataset, open_dataset
from emulator.analysis.errors import AnalysisError, why
from emulator.analysis.report import write_report

CHECKPOINT, FILES = "checkpoint", "files"
LOOK_EVERY = "2 seconds"
OnUpdate = Callable[[Dataset, Analysis], None]


class Following:
    """Tables that are kept up to date in `out`. Begun, or gone on with where it was."""

    def __init__(
        self, base: Path, out: Path, on_update: OnUpdate, *, skip_bad: bool = False
    ) -> None:
        self.base, self.out = base.resolve(), out
        self._on_update, self._skip_bad = on_update, skip_bad
        self._failure: AnalysisError | None = None

    def start(self, spark: SparkSession, *, once: bool = False) -> StreamingQuery:
        """`once`: with what is there, and no longer."""
        (self.out / FILES).mkdir(parents=True, exist_ok=True)
        names = [_names(spark, self.base / part) for part in (EVENTS, RUNS)]
        writer = names[0].unionByName(names[1]).writeStream.foreachBatch(self._take)
        trigger = {"availableNow": True} if once else {"processingTime": LOOK_EVERY}
        kept = writer.option("checkpointLocation", str(self.out / CHECKPOINT))
        return kept.trigger(**trigger).start()

    def wait(self, query: StreamingQuery) -> None:
        """Until it ends. AnalysisError. A signal is raised here, and not within a talk to Java,
        which would be torn off."""
        over = Event()
        failed: list[Exception] = []

        def until_it_ends() -> None:
            try:
                query.awaitTermination()
            except Exception as error:  # noqa: BLE001
                failed.append(error)
            finally:
                over.set()

        Thread(target=until_it_ends, name="isr-follow", daemon=True).start()
        over.wait()
        if failed:
            raise self._failure or AnalysisError(f"{self.base}: {why(failed[0])}")

    def _take(self, batch: DataFrame, number: int) -> None:
        _write_down(batch, self.out / FILES / f"{number:08}.json")
        try:
            self._renew(batch.sparkSession)
        except AnalysisError as error:
            self._failure = error
            raise

    def _renew(self, spark: SparkSession) -> None:
        look = partial(
            open_dataset,
            self.base,
            skip_bad=self._skip_bad,
            unfinished=True,
            only=known_files(self.out),
        )
        found, made = analyse_readable(spark, look(), look)
        write(made, self.out, csv=False)
        title = f"Analysis of {self.base.name}, still growing"
        write_report(made, self.out, title, found.problems)
        self._on_update(found, made)


def _names(spark: SparkSession, folder: Path) -> DataFrame:
    """Of whole files, which are not opened: whoever looks at them says what is wrong with one."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = spark.readStream.format("binaryFile").schema(_OF_FILES)
    below = stream.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    there = below.option("ignoreMissingFiles", "true")
    return there.load(str(folder)).select(F.col("_metadata.file_path").alias("file"))


_OF_FILES = "path string, modificationTime timestamp, length bigint, content binary"


def _write_down(batch: DataFrame, into: Path) -> None:
    """Under the batch's number: a second time is the same file."""
    uris = [row.file for row in batch.distinct().collect()]
    names = sorted(unquote(urlparse(uri).path) for uri in uris)
    aside = into.with_suffix(".part")
    aside.write_bytes(msgspec.json.encode(names))
    aside.replace(into)


def known_files(out: Path) -> list[Path]:
    """All files that were written down and are still there, each once."""
    found: set[str] = set()
    for file in (out / FILES).glob("*.json"):
        found.update(msgspec.json.decode(file.read_bytes(), type=list[str]))
    return [file for file in map(Path, sorted(found)) if file.exists()]
