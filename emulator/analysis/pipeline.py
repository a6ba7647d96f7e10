"""The pipeline from a data set to its tables and report, arranged around Spark's start and stop.

Owns only that order. Spark takes seconds to start, on one core: meanwhile the files are checked,
and merged if they are many and small. The plotting library loads while Spark computes, and the
report is drawn while Spark stops. Spark is stopped also after an error or an interrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import SparkSession

from emulator.analysis import session
from emulator.analysis.analyse import Analysis, OnTable, OpenAgain, analyse_readable, write
from emulator.analysis.dataset import Dataset, estimate_rows
from emulator.analysis.merged_files import merge_small_files
from emulator.analysis.plots import preload
from emulator.analysis.report import write_report

Start = Callable[[dict[str, str]], SparkSession]
"""Starts a session with additional settings."""


class AnalysedReport(NamedTuple):
    """The readable data set, its analysis, and the path of the report."""

    dataset: Dataset
    analysis: Analysis
    page: Path


def analyse_and_report(
    base: Path,
    out: Path,
    open_again: OpenAgain,
    start: Start,
    *,
    local: bool,
    csv: bool = False,
    on_open: Callable[[Dataset], None] = lambda _: None,
    on_table: OnTable = lambda *_: None,
) -> AnalysedReport:
    """Run the whole pipeline. `local`: Spark can read this machine's temporary folder. BadDataset,
    NoSpark, AnalysisError."""
    rows = estimate_rows(base) or open_again().rows
    with TemporaryDirectory(prefix="isr-analyze-") as aside, ThreadPoolExecutor(1) as meanwhile:
        starting = meanwhile.submit(start, session.sized(rows))
        try:
            dataset = open_again()
            on_open(dataset)
            source = merge_small_files(dataset, Path(aside)) if local else dataset
            meanwhile.submit(preload)
            readable, analysis = analyse_readable(starting.result(), source, open_again, on_table)
        finally:
            meanwhile.submit(_stop, starting)
        write(analysis, out, csv=csv)
        title = f"Analysis of {base.resolve().name}"
        return AnalysedReport(
            readable, analysis, write_report(analysis, out, title, readable.problems)
        )


def _stop(starting: Future[SparkSession]) -> None:
    """Stop Spark. A failed start is reported by the thread that waits for it."""
    if starting.exception() is None:
        starting.result().stop()
