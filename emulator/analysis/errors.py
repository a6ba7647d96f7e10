"""What goes wrong with data sets and Spark through no fault of ours: one line each.

Owns the exceptions whose message is all that a user needs. The command line turns them into exit
code 64.
"""

from __future__ import annotations


class AnalysisError(Exception):
    """The message says which file or option, and what is wrong with it."""


class BadDataset(AnalysisError):
    """A data set, or one file of it, that cannot be used as it is."""


class NoSpark(AnalysisError):
    """Spark cannot be had: no Java, a master that does not answer."""
