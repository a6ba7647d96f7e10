"""Events of every kind with any values, made from their types; and how a row of them must look."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from emulator.trace.columns import KINDS, columns_by_kind
from emulator.trace.event import Event
from emulator.trace.values import Parameters

_NUMBERS = st.integers(-(2**63), 2**63 - 1)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def _values(of: inspect.Type) -> st.SearchStrategy[Any]:
    match of:
        case inspect.IntType():
            return _NUMBERS
        case inspect.FloatType():
            return st.floats(allow_nan=False)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values):
            return st.sampled_from(values)
        case inspect.UnionType(types):
            return st.one_of(*map(_values, types))
        case inspect.VarTupleType(item):
            return st.lists(_values(item), max_size=3).map(tuple)
        case inspect.DictType(key, item):
            return st.dictionaries(_values(key), _values(item), max_size=2)
        case inspect.StructType(cls, fields) if cls is Parameters:
            return st.builds(cls, **{field.name: _values(field.type) for field in fields})
        case inspect.StructType(cls, fields) | inspect.NamedTupleType(cls, fields):
            return st.builds(cls, *(_values(field.type) for field in fields))
    return _TEXTS


def _events(kind: type[Event]) -> st.SearchStrategy[Any]:
    return _values(inspect.type_info(kind))


EVENTS = st.lists(st.one_of(*map(_events, KINDS)), min_size=1, max_size=8)


def row(event: Any) -> dict[str, Any]:
    """A row of an event, without nulls."""
    kind = event.kind
    common = {name: getattr(event, name) for name in ("seq", "t", "broker", "thread", "cause")}
    own = {column.name: _plain(_at(event, column.path)) for column in columns_by_kind()[kind]}
    return {"kind": kind, **common, **{k: v for k, v in own.items() if v is not None}}


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = getattr(value, name)
    return value


def _plain(value: Any) -> Any:
    """Records with their names; a TopicPartition within one is spread out."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_plain(one) for one in value]
    names = getattr(value, "_fields", None) or getattr(value, "__struct_fields__", None)
    if names is None:
        return value
    found: dict[str, Any] = {}
    for name in names:
        part = _plain(getattr(value, name))
        spread = isinstance(part, dict) and set(part) == {"topic", "partition"}
        found |= part if spread else {name: part}
    return found
