"""Finds the line with the cause in a Java stack trace."""

from __future__ import annotations

import pytest

from emulator.analysis.errors import why

JAVA = """\
An error occurred while calling o319.localCheckpoint.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors)
Caused by: com.github.luben.zstd.ZstdIOException: Data corruption detected
"""
PYTHON = """\
Job aborted due to stage failure: Task 3 in stage 0.0 failed 1 times, most recent failure: Lost task
Traceback (most recent call last):
  File "batch.py", line 12, in play_batch
emulator.analysis.errors.AnalysisError: data: No space left on device
"""


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (JAVA, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file"),
        (PYTHON, "data: No space left on device"),
        ("the machine went away\nyesterday", "the machine went away"),
        ("", "RuntimeError"),
        ("java.lang.IllegalStateException: " + "x" * 400, "x" * 300),
    ],
)
def test_the_line_that_names_an_exception_counts(page: str, line: str) -> None:
    assert why(RuntimeError(page)) == line
