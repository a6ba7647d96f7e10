"""The one percentile of the project, by nearest rank: it is always one of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def nearest_rank(ordered: Sequence[T], percent: int) -> T:
    """The first value that at least so many percent of the values do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
