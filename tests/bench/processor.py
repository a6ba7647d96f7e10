"""Processor time of the processes that a benchmark starts."""

from __future__ import annotations

import resource


def children_s() -> float:
    """Of the children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
