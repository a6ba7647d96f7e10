"""Events as Arrow tables, column by column.

Owns how a value of the vocabulary becomes a column: numbers and texts as they are, a list with its
offsets, a record with its parts. One kind at a time, since all events of a kind have the same
attributes. What the columns are is `trace.columns`' business, where tables go the writer's.
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
    """These columns in the data set's order, and its version."""
    wanted = frozenset(names)
    fields = [pa.field(name, arrow_type(of)) for name, of in schema().items() if name in wanted]
    return pa.schema(fields, metadata={VERSION_KEY: str(DATASET_VERSION)})


def by_kind(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events of each kind, in their order."""
    found: dict[type[Event], list[Event]] = {}
    for event in events:
        kind = type(event)
        if kind in found:
            found[kind].append(event)
        else:
            found[kind] = [event]
    return dict(sorted((str(kind.__struct_config__.tag), group) for kind, group in found.items()))


def table_of(
    kind: str, events: Sequence[Event], into: pa.Schema, constants: dict[str, str]
) -> pa.Table:
    """A table of one kind's events with the columns of `into`; what the kind lacks is null.
    `constants` are columns with one value."""
    own = {column.name: column for column in columns_by_kind()[kind]}
    values = {"kind": kind, **constants}
    made = [_made(field, own.get(field.name), events, values) for field in into]
    return pa.Table.from_arrays(made, schema=into)


def columns_of(kinds: Iterable[str]) -> set[str]:
    """The columns that rows of these kinds fill."""
    return {*COMMON, SETTING, *(c.name for kind in kinds for c in columns_by_kind()[kind])}


def _made(
    field: pa.Field, column: Column | None, events: Sequence[Event], constants: dict[str, str]
) -> pa.Array:
    if field.name in constants:
        return pa.repeat(pa.scalar(constants[field.name]), len(events))
    if column is not None:
        return _array(_all(events, column.path), column.type)
    if field.name in COMMON:
        return pa.array(map(attrgetter(field.name), events), field.type, size=len(events))
    return pa.nulls(len(events), field.type)


def _all(values: Iterable[object], path: tuple[str, ...]) -> list[Any]:
    return list(map(attrgetter(".".join(path)), values))


def _array(values: list[Any], of: Type) -> pa.Array:
    match of:
        case ListOf(item):
            offsets = pa.array(accumulate(map(len, values), initial=0), pa.int32())
            inner = _array(list(chain.from_iterable(values)), item)
            return pa.ListArray.from_arrays(offsets, inner, type=arrow_type(of))
        case Record(columns):
            parts = [_array(_all(values, column.path), column.type) for column in columns]
            return pa.StructArray.from_arrays(parts, fields=list(arrow_type(of)))
    return pa.array(values, _SCALARS[of])
