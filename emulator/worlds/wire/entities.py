"""kio's entities from plain values, in any version, and as bytes.

An API provides all values of its newest version; `make` uses those for which the requested
version's schema has a field. Owns the conversion of values to kio's types (durations, error codes);
knows no API. `decoder` reads bytes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, cast, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.serial._implicit_defaults import get_tagged_field_default

Values = Mapping[str, object]
"""What a message is to say, by the names of its fields in Kafka's newest schema."""


class Entity(Protocol):
    """One of kio's dataclasses. Its version determines its fields: an old one lacks some."""

    __version__: ClassVar[int]

    def __getattr__(self, name: str) -> Any: ...


class Schema(Protocol):
    """The class of an entity: a message of one version, or a struct in it."""

    __name__: str
    __flexible__: ClassVar[bool]
    __header_schema__: ClassVar[Schema]

    def __call__(self, **fields: object) -> Entity: ...

    def __hash__(self) -> int: ...


def _milliseconds(value: int) -> dt.timedelta:
    return dt.timedelta(milliseconds=value)


_CONVERTED: dict[str, Callable[[int], object]] = {
    "error_code": ErrorCode,
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
}


class Field:
    """How one field of a schema is written and read."""

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self.name = field.name
        arms = [a for a in (field.type, *get_args(field.type)) if a is not None]
        self.many = any(get_origin(arm) is tuple for arm in arms)
        self.schema = next(filter(None, map(_nested_schema, arms)), None)
        self.kafka_type = field.metadata.get("kafka_type", "")
        self.convert = _CONVERTED.get(self.kafka_type)
        # kio expresses nullability only in the type: `str | None`, `tuple[...] | None`.
        self.nullable = type(None) in get_args(field.type)
        self.tag = field.metadata.get("tag")
        self.default = None if self.tag is None else get_tagged_field_default(field)

    def converted(self, value: Any) -> object:
        """The value that kio expects for a plain value."""
        if value is None:
            return None
        if self.schema is not None:
            schema = self.schema
            return tuple([make(schema, v) for v in value]) if self.many else make(schema, value)
        if self.many:
            return tuple(value)
        return value if self.convert is None else self.convert(value)


def _nested_schema(kind: Any) -> Schema | None:
    """The schema of a field's type, if it has one."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return cast("Schema", kind)
    return next(filter(None, map(_nested_schema, get_args(kind))), None)


@cache
def fields_of(schema: Any) -> tuple[Field, ...]:
    return tuple(Field(field) for field in dataclasses.fields(schema))


def make(schema: Schema, values: Values) -> Entity:
    """An entity from the values that it has fields for; missing values have their default."""
    filled = {f.name: f.converted(values[f.name]) for f in fields_of(schema) if f.name in values}
    return schema(**filled)


@cache
def request_schema(key: int, version: int) -> Schema:
    return cast("Schema", load_request_schema(key, version))


@cache
def response_schema(key: int, version: int) -> Schema:
    return cast("Schema", load_response_schema(key, version))


def write(out: io.BytesIO, entity: Entity) -> None:
    schema: Any = type(entity)
    entity_writer(schema)(out, entity)


def milliseconds(value: dt.timedelta) -> int:
    return value // dt.timedelta(milliseconds=1)
