"""Errors of data sets and of Spark, each with a message of one line.

Owns the exceptions whose message is all that a user needs, and finds the one useful line in a Java
stack trace. The command line turns them into exit code 64.
"""

from __future__ import annotations

import re


class AnalysisError(Exception):
    """The message names the file or option and says what is wrong with it."""


class BadDataset(AnalysisError):
    """A data set, or one of its files, is unusable."""


class NoSpark(AnalysisError):
    """Spark does not start: Java is missing, or the master does not answer."""


def why(error: BaseException) -> str:
    """The cause in an error of Spark or of an executor's Python: the first line that names an
    exception, without the exception's class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = (match[1] for line in lines if (match := _EXCEPTION_LINE.search(line)))
    return next(messages, lines[0] if lines else type(error).__name__)[:300]


_EXCEPTION_LINE = re.compile(r"(?:[\w.$]*(?:Error|Exception): )+(.+)")
