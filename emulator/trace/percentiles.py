"""The project's only percentile function. It uses the nearest rank, so the result is always one of
the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def nearest_rank(ordered: Sequence[T], percent: int) -> T:
    """The smallest value that at least `percent` percent of the values do not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
