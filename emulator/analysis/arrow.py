"""Events as Arrow tables, column by column.

Owns how an event's value becomes a column: numbers and strings unchanged, a list with its offsets,
a record with its fields. Works on one kind at a time, since all events of a kind have the same
attributes. `trace.columns` defines the columns; `writer` stores the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import pyarrow as pa

from emulator.trace.columns import (
    COMMON,
    DATASET_VERSION,
    SETTING,
    Column,
    ListOf,
    Record,
    Type,
    columns_by_kind,
    schema,
)
from emulator.trace.event import Event

VERSION_KEY = b"isr.dataset"
_SCALARS = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
}


@cache
def arrow_type(of: Type) -> pa.DataType:
    """The Arrow type of a column."""
    match of:
        case ListOf(item):
            return pa.list_(arrow_type(item))
        case Record(columns):
            return pa.struct([pa.field(c.name, arrow_type(c.type)) for c in columns])
    return _SCALARS[of]


def arrow_schema(names: Iterable[str]) -> pa.Schema:
    """These columns in the data set's order. The metadata hold the data set's version."""
    selected = frozenset(names)
    fields = [pa.field(name, arrow_type(of)) for name, of in schema().items() if name in selected]
    return pa.schema(fields, metadata={VERSION_KEY: str(DATASET_VERSION)})


def by_kind(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events grouped by kind, in their order."""
    groups: dict[type[Event], list[Event]] = {}
    for event in events:
        kind = type(event)
        if kind in groups:
            groups[kind].append(event)
        else:
            groups[kind] = [event]
    return dict(sorted((str(kind.__struct_config__.tag), group) for kind, group in groups.items()))


def table_of(
    kind: str, events: Sequence[Event], into: pa.Schema, constants: dict[str, str]
) -> pa.Table:
    """A table of one kind's events with the columns of `into`. Columns that the kind lacks are
    null. `constants` are columns with a single value."""
    own = {column.name: column for column in columns_by_kind()[kind]}
    values = {"kind": kind, **constants}
    columns = [_arrow_column(field, own.get(field.name), events, values) for field in into]
    return pa.Table.from_arrays(columns, schema=into)


def columns_of(kinds: Iterable[str]) -> set[str]:
    """The columns that rows of these kinds fill."""
    return {*COMMON, SETTING, *(c.name for kind in kinds for c in columns_by_kind()[kind])}


def _arrow_column(
    field: pa.Field, column: Column | None, events: Sequence[Event], constants: dict[str, str]
) -> pa.Array:
    if field.name in constants:
        return pa.repeat(pa.scalar(constants[field.name]), len(events))
    if column is not None:
        return _arrow_array(_read_path(events, column.path), column.type)
    if field.name in COMMON:
        return pa.array(map(attrgetter(field.name), events), field.type, size=len(events))
    return pa.nulls(len(events), field.type)


def _read_path(values: Iterable[object], path: tuple[str, ...]) -> list[Any]:
    return list(map(attrgetter(".".join(path)), values))


def _arrow_array(values: list[Any], of: Type) -> pa.Array:
    match of:
        case ListOf(item):
            offsets = pa.array(accumulate(map(len, values), initial=0), pa.int32())
            inner = _arrow_array(list(chain.from_iterable(values)), item)
            return pa.ListArray.from_arrays(offsets, inner, type=arrow_type(of))
        case Record(columns):
            parts = [
                _arrow_array(_read_path(values, column.path), column.type) for column in columns
            ]
            return pa.StructArray.from_arrays(parts, fields=list(arrow_type(of)))
    return pa.array(values, _SCALARS[of])
