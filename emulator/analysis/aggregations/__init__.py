"""Aggregations, one file each: `aggregate(events) -> DataFrame` with the columns of `SCHEMA`.

Modules of this package register themselves by existing: the module's name is the table's name, its
docstring the table's caption. They use only Spark's functions: no Python code per row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec
from pyspark.sql import DataFrame

from emulator.registry import modules_of


class Aggregation(msgspec.Struct, frozen=True):
    """A table: caption, columns and function. `of_many`: it reads so many rows that compiling its
    query pays (`OF_MANY` in its module)."""

    name: str
    about: str
    schema: str
    aggregate: Callable[[DataFrame], DataFrame]
    of_many: bool


@cache
def aggregations() -> dict[str, Aggregation]:
    """All aggregations by name."""
    tables = {}
    for module in modules_of(__name__):
        name = module.__name__.rpartition(".")[2]
        about = " ".join((module.__doc__ or "").split())
        of_many = getattr(module, "OF_MANY", False)
        tables[name] = Aggregation(name, about, module.SCHEMA, module.aggregate, of_many)
    return tables
