"""From a data set to its tables and its report: what is done while Spark starts, and while it ends.

Owns that order alone. Spark takes seconds to start, on one core: meanwhile the files are looked at,
and put together if they are small and many. While it works the pictures' library is loaded, while
it ends the report is drawn. What is started is stopped, also when a file cannot be read or somebody
interrupts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import SparkSession

from emulator.analysis import session
from emulator.analysis.analyse import Analysis, Look, OnTable, analyse_readable, write
from emulator.analysis.dataset import Dataset, rows_about
from emulator.analysis.gathered import gathered
from emulator.analysis.plots import prepare
from emulator.analysis.report import write_report

Start = Callable[[dict[str, str]], SparkSession]
"""Starts a session with these settings beside its own."""


class Whole(NamedTuple):
    """What could be read, what was found in it, and where the report is."""

    left: Dataset
    found: Analysis
    page: Path


def analyse_whole(
    base: Path,
    out: Path,
    look: Look,
    start: Start,
    *,
    local: bool,
    csv: bool = False,
    on_open: Callable[[Dataset], None] = lambda _: None,
    on_table: OnTable = lambda *_: None,
) -> Whole:
    """All of it; `local`: Spark sees what lies in this machine's temporary folder. BadDataset,
    NoSpark, AnalysisError."""
    rows = rows_about(base) or look().rows
    with TemporaryDirectory(prefix="isr-analyze-") as aside, ThreadPoolExecutor(1) as meanwhile:
        starting = meanwhile.submit(start, session.sized(rows))
        try:
            every = look()
            on_open(every)
            read = gathered(every, Path(aside)) if local else every
            meanwhile.submit(prepare)
            left, found = analyse_readable(starting.result(), read, look, on_table)
        finally:
            meanwhile.submit(_stop, starting)
        write(found, out, csv=csv)
        title = f"Analysis of {base.resolve().name}"
        return Whole(left, found, write_report(found, out, title, left.problems))


def _stop(starting: Future[SparkSession]) -> None:
    """What kept it from starting is told by who waited for it."""
    if starting.exception() is None:
        starting.result().stop()
