"""Aggregations, one file each: `aggregate(events) -> DataFrame` with the columns of `SCHEMA`.

A module of this package with both is found by a scan; its name is the table's name, its docstring
the table's heading. They use Spark's own functions only: no Python per row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec
from pyspark.sql import DataFrame

from emulator.registry import modules_of


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
    tables = {}
    for module in modules_of(__name__):
        name = module.__name__.rpartition(".")[2]
        about = " ".join((module.__doc__ or "").split())
        of_many = getattr(module, "OF_MANY", False)
        tables[name] = Aggregation(name, about, module.SCHEMA, module.aggregate, of_many)
    return tables
