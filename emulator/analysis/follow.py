"""Analysis of a data set that is still growing: tables and report are kept up to date.

Owns the stream. Structured Streaming detects new files without opening them, and its checkpoint
remembers which ones it has delivered. Each micro-batch records the names of its files under its
number: a batch that is delivered twice counts once, and an unfinished batch is delivered again. The
tables are computed from all recorded files, with the same checks and code as for a complete data
set. Runs may still be going.
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


class LiveAnalysis:
    """Keeps the tables in `out` up to date. Continues an earlier analysis in the same folder."""

    def __init__(
        self, base: Path, out: Path, on_update: OnUpdate, *, skip_bad: bool = False
    ) -> None:
        self.base, self.out = base.resolve(), out
        self._on_update, self._skip_bad = on_update, skip_bad
        self._failure: AnalysisError | None = None

    def start(self, spark: SparkSession, *, once: bool = False) -> StreamingQuery:
        """Start the stream. `once`: process the existing files and stop."""
        (self.out / FILES).mkdir(parents=True, exist_ok=True)
        names = [_file_names(spark, self.base / part) for part in (EVENTS, RUNS)]
        writer = names[0].unionByName(names[1]).writeStream.foreachBatch(self._process_batch)
        trigger = {"availableNow": True} if once else {"processingTime": LOOK_EVERY}
        checkpointed = writer.option("checkpointLocation", str(self.out / CHECKPOINT))
        return checkpointed.trigger(**trigger).start()

    def wait(self, query: StreamingQuery) -> None:
        """Wait until the stream ends. AnalysisError. The main thread waits on an event, because a
        signal during a call into Java would cut the connection."""
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

    def _process_batch(self, batch: DataFrame, number: int) -> None:
        _record_files(batch, self.out / FILES / f"{number:08}.json")
        open_again = partial(
            open_dataset,
            self.base,
            skip_bad=self._skip_bad,
            unfinished=True,
            only=known_files(self.out),
        )
        try:
            dataset, analysis = analyse_readable(batch.sparkSession, open_again(), open_again)
        except AnalysisError as error:  # Spark reports only that the batch failed
            self._failure = error
            raise
        write(analysis, self.out, csv=False)
        title = f"Analysis of {self.base.name}, still growing"
        write_report(analysis, self.out, title, dataset.problems)
        self._on_update(dataset, analysis)


def _file_names(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream of the names of complete files. Files are not opened here; `open_dataset` checks
    them."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = spark.readStream.format("binaryFile").schema(_OF_FILES)
    below = stream.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    existing = below.option("ignoreMissingFiles", "true")
    return existing.load(str(folder)).select(F.col("_metadata.file_path").alias("file"))


_OF_FILES = "path string, modificationTime timestamp, length bigint, content binary"


def _record_files(batch: DataFrame, into: Path) -> None:
    """Record the batch's files under its number; a repeated batch writes the same file."""
    uris = [row.file for row in batch.distinct().collect()]
    names = sorted(unquote(urlparse(uri).path) for uri in uris)
    aside = into.with_suffix(".part")
    aside.write_bytes(msgspec.json.encode(names))
    aside.replace(into)


def known_files(out: Path) -> list[Path]:
    """All recorded files that still exist, each once."""
    names: set[str] = set()
    for file in (out / FILES).glob("*.json"):
        names.update(msgspec.json.decode(file.read_bytes(), type=list[str]))
    return [file for file in map(Path, sorted(names)) if file.exists()]
