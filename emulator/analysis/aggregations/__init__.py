"""Aggregations, one file each: `aggregate(events) -> DataFrame` with the columns of `SCHEMA`.

A module of this package with both is found by a scan; its name is the table's name, its docstring
the table's heading. They use Spark's own functions only: no Python per row.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

import msgspec
from pyspark.sql import DataFrame


class Aggregation(msgspec.Struct, frozen=True):
    """One table: what it says, its columns, how it is made. `of_many`: from so many rows that its
    query is worth compiling (`OF_MANY` of its module)."""

    name: str
    about: str
    schema: str
    aggregate: Callable[[DataFrame], DataFrame]
    of_many: bool


@cache
def aggregations() -> dict[str, Aggregation]:
    """All of them by name."""
    found: dict[str, Aggregation] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        about = " ".join((module.__doc__ or "").split())
        of_many = getattr(module, "OF_MANY", False)
        found[info.name] = Aggregation(info.name, about, module.SCHEMA, module.aggregate, of_many)
    return found
