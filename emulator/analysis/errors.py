"""What goes wrong with data sets and Spark through no fault of ours: one line each.

Owns the exceptions whose message is all that a user needs, and the one line that matters of a page
of Java. The command line turns them into exit code 64.
"""

from __future__ import annotations

import re


class AnalysisError(Exception):
    """The message says which file or option, and what is wrong with it."""


class BadDataset(AnalysisError):
    """A data set, or one file of it, that cannot be used as it is."""


class NoSpark(AnalysisError):
    """Spark cannot be had: no Java, a master that does not answer."""


def why(error: BaseException) -> str:
    """What Spark, or an executor's Python, says is wrong: its first line that names an exception,
    without the exception's class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = (found[1] for line in lines if (found := _NAMED.search(line)))
    return next(named, lines[0] if lines else type(error).__name__)[:300]


_NAMED = re.compile(r"(?:[\w.$]*(?:Error|Exception): )+(.+)")
