"""The columns of a data set of traces: one row per event, made from the vocabulary.

Owns the explicit schema that writers, Spark and `docs/trace.md` share. A field of an event becomes
a column of the same name; a TopicPartition becomes two, `topic` and `partition`. Where two kinds of
events have fields with the same name but different types, the first in the vocabulary keeps the
name and the other becomes `<kind>_<field>`. Adding columns is compatible (older files have nulls
there); changing a column's type, renaming it or removing it needs a new version. This module must
not depend on Arrow, Parquet or Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import get_args

import msgspec
from msgspec import inspect

from emulator.trace.event import Event
from emulator.trace.events import AnyEvent
from emulator.trace.rows import ROWS
from emulator.trace.values import Parameters, TopicPartition

DATASET_VERSION = 2
KINDS: tuple[type[Event], ...] = (*get_args(AnyEvent), *ROWS)
COMMON = ("kind", "seq", "t", "broker", "thread", "cause")
SETTING = "setting"
PARTITIONED_BY = ("scenario", "profile", "propagation", "run")


class ListOf(msgspec.Struct, frozen=True):
    item: Type


class Record(msgspec.Struct, frozen=True):
    """A struct: named fields in order."""

    columns: tuple[Column, ...]


class Column(msgspec.Struct, frozen=True):
    """`path`: the attributes that lead from an event to the value."""

    name: str
    type: Type
    path: tuple[str, ...] = ()


Type = str | ListOf | Record
"""A simple type (`string`, `bigint`, `boolean`, `double`) or a composite one."""

_SCALARS: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "bigint",
    inspect.BoolType: "boolean",
    inspect.FloatType: "double",
}


def ddl(of: Type) -> str:
    """A type in Spark's DDL: `array<struct<topic:string,partition:bigint>>`."""
    match of:
        case ListOf(item):
            return f"array<{ddl(item)}>"
        case Record(columns):
            return f"struct<{','.join(f'{c.name}:{ddl(c.type)}' for c in columns)}>"
    return of


def _type(of: inspect.Type) -> Type:
    match of:
        case inspect.UnionType(types):
            (one,) = (t for t in types if not isinstance(t, inspect.NoneType))
            return _type(one)
        case inspect.VarTupleType(item) | inspect.ListType(item):
            return ListOf(_type(item))
        case inspect.StructType(_, fields) | inspect.NamedTupleType(_, fields):
            return Record(tuple(c for field in fields for c in _columns(field)))
        case inspect.LiteralType():
            return "string"
    return _SCALARS[type(of)]


def _columns(field: inspect.Field) -> tuple[Column, ...]:
    """The columns of one field. A TopicPartition becomes two; an action's parameters become one
    JSON text."""
    if isinstance(field.type, inspect.StructType) and field.type.cls is Parameters:
        return (Column("arguments", "string", (field.name, "text")),)
    if isinstance(field.type, inspect.NamedTupleType) and field.type.cls is TopicPartition:
        inner = [Column(f.name, _type(f.type), (field.name, f.name)) for f in field.type.fields]
        return tuple(inner)
    return (Column(field.encode_name, _type(field.type), (field.name,)),)


def _own_columns(kind: type[Event]) -> list[Column]:
    """The columns of a kind without the common ones."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return [c for f in info.fields if f.name not in COMMON for c in _columns(f)]


@cache
def columns_by_kind() -> dict[str, tuple[Column, ...]]:
    """Column names and columns of each kind, without the common ones."""
    types: dict[str, Type] = dict.fromkeys(PARTITIONED_BY, "a directory")
    by_kind: dict[str, tuple[Column, ...]] = {}
    for kind in KINDS:
        name = str(kind.__struct_config__.tag)
        by_kind[name] = tuple(_unique_name(name, column, types) for column in _own_columns(kind))
    return by_kind


def _unique_name(kind: str, column: Column, types: dict[str, Type]) -> Column:
    known = types.setdefault(column.name, column.type)
    if known == column.type:
        return column
    own = msgspec.structs.replace(column, name=f"{kind}_{column.name}")
    assert types.setdefault(own.name, own.type) == own.type, f"{own.name}: two types"
    return own


@cache
def schema() -> dict[str, Type]:
    """All columns of a row by name, in order; the partitioning columns (PARTITIONED_BY) come
    last."""
    types: dict[str, Type] = {
        "kind": "string",
        "seq": "bigint",
        "t": "bigint",
        "broker": "bigint",
        "thread": "string",
        "cause": "bigint",
        SETTING: "string",
    }
    for columns in columns_by_kind().values():
        types |= {column.name: column.type for column in columns}
    return types | dict.fromkeys(PARTITIONED_BY, "string")


def schema_ddl(only: Collection[str] = (), parts: Mapping[str, Collection[str]] = {}) -> str:
    """The schema as Spark DDL, optionally limited to some columns and to some fields of records."""
    types = {name: of for name, of in schema().items() if not only or name in only}
    types |= {name: _with_fields(types[name], fields) for name, fields in parts.items()}
    return ", ".join(f"`{name}` {ddl(of)}" for name, of in types.items())


def _with_fields(of: Type, names: Collection[str]) -> Type:
    """A record, or a list of records, with only these fields."""
    if isinstance(of, ListOf):
        return ListOf(_with_fields(of.item, names))
    assert isinstance(of, Record), of
    assert {*names} <= {column.name for column in of.columns}, names
    return Record(tuple(column for column in of.columns if column.name in names))


def markdown() -> str:
    """The section of `docs/trace.md`."""
    rows = "\n".join(f"| `{n}` | {ddl(t)} | {_filled_by(n)} |" for n, t in schema().items())
    kinds = "\n".join(f"- **`{k.__struct_config__.tag}`**: {_description(k)}" for k in ROWS)
    return _HEAD.format(version=DATASET_VERSION, kinds=kinds) + rows + "\n"


def _description(kind: type[Event]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _filled_by(column: str) -> str:
    """The kinds of events that fill a column."""
    if column in (*COMMON, SETTING):
        return "every row"
    if column in PARTITIONED_BY:
        return "the directories"
    kinds = [k for k, own in columns_by_kind().items() if any(c.name == column for c in own)]
    more = f" and {len(kinds) - 4} more" if len(kinds) > 4 else ""
    return ", ".join(f"`{kind}`" for kind in kinds[:4]) + more


_HEAD = """
# The trace as a data set

`isr run --parquet DIR`, `isr fuzz --parquet DIR` and `isr sweep` write Parquet files, data set
version {version} (in each file's metadata, key `isr.dataset`):

    DIR/events/scenario=…/profile=…/propagation=…/run=…/part-00000.parquet   events, in pieces
    DIR/runs/….parquet                                           what was run, what came of it

Each piece is written under another name and renamed when it is whole. A row is an event; a column
that its kind does not have is null, and a file leaves out the columns that none of its rows fills.
Rows are grouped by kind, in the order of `seq` within. `setting` is what a sweep or `--set` chose
for the run, as `KEY=VALUE KEY=VALUE` (empty: nothing). Who reads takes a column that a file lacks
as null, so that files of before a column was there stay readable. A column that is renamed, changes
its type or goes away makes a new version.

Kinds that are no events of a trace:

{kinds}

| column | type | filled by |
|---|---|---|
"""
