"""kio's entities from plain values, in whichever version, and back from bytes.

An API says all that it has to say, as of its newest version: `make` takes what the version's schema
has a field for. Reading goes by kio's schemas too, but passes over tagged fields that they do not
know, as KIP-482 asks (kio 0.5 stops at one; librdkafka sends one by accident). Owns how values
become kio's types (durations, error codes); knows no API.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer, readers
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._parse import get_reader

from emulator.worlds.wire.errors import Malformed

Values = Mapping[str, Any]


def _milliseconds(value: int) -> dt.timedelta:
    return dt.timedelta(milliseconds=value)


_CONVERTED: dict[str, Callable[[int], object]] = {
    "error_code": ErrorCode,
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
}


class _Field:
    """How one field of a schema is filled."""

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self.name = field.name
        arms = [a for a in (field.type, *get_args(field.type)) if a is not None]
        self.many = any(get_origin(arm) is tuple for arm in arms)
        self.entity = next(filter(None, map(_entity_in, arms)), None)
        self.kafka_type = field.metadata.get("kafka_type", "")
        self.convert = _CONVERTED.get(self.kafka_type)
        self.nullable = type(None) in get_args(field.type)
        self.tag = field.metadata.get("tag")
        self.default = None if self.tag is None else get_tagged_field_default(field)

    def filled(self, value: Any) -> Any:
        if value is None:
            return None
        if self.entity is not None:
            entity = self.entity
            return tuple([make(entity, v) for v in value]) if self.many else make(entity, value)
        if self.many:
            return tuple(value)
        return value if self.convert is None else self.convert(value)


def _entity_in(kind: Any) -> type | None:
    """The nested schema of a field's type, if it has one."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return kind
    return next(filter(None, map(_entity_in, get_args(kind))), None)


@cache
def _fields(entity: Any) -> tuple[_Field, ...]:
    return tuple(_Field(field) for field in dataclasses.fields(entity))


def make(entity: Any, values: Values) -> Any:
    """An entity from the values that it has fields for; what is not given has its default."""
    filled = {f.name: f.filled(values[f.name]) for f in _fields(entity) if f.name in values}
    return entity(**filled)


def request_schema(key: int, version: int) -> Any:
    return load_request_schema(key, version)


def response_schema(key: int, version: int) -> Any:
    return load_response_schema(key, version)


def write(out: io.BytesIO, entity: Any) -> None:
    entity_writer(type(entity))(out, entity)


def read(schema: Any, data: bytes, offset: int) -> tuple[Any, int]:
    """An entity and the offset behind it. Malformed, whatever kio stumbled over: these bytes come
    from strangers."""
    try:
        return _Reader(data).entity(schema, offset)
    except Malformed as error:
        raise Malformed(f"{schema.__name__}: {error}") from None
    except Exception as error:  # noqa: BLE001
        raise Malformed(f"{schema.__name__}: {type(error).__name__}: {error}") from None


class _Reader:
    """One message's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def entity(self, schema: Any, at: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for field in _fields(schema):
            if field.tag is None:
                values[field.name], at = self._field(schema, field, at)
            else:
                values[field.name] = field.default
        if schema.__flexible__:
            at = self._tagged(schema, values, at)
        return schema(**values), at

    def _tagged(self, schema: Any, values: dict[str, Any], at: int) -> int:
        known = {field.tag: field for field in _fields(schema) if field.tag is not None}
        count, at = self._varint(at)
        for _ in range(count):
            tag, at = self._varint(at)
            size, at = self._varint(at)
            if size > len(self._data) - at:
                raise Malformed(f"a tagged field of {size} bytes")
            if tag in known:
                values[known[tag].name], _end = self._field(schema, known[tag], at)
            at += size
        return at

    def _varint(self, at: int) -> tuple[int, int]:
        value, size = readers.read_unsigned_varint(self._data, at)
        return value, at + size

    def _field(self, schema: Any, field: _Field, at: int) -> tuple[Any, int]:
        if field.many:
            return self._array(schema, field, at)
        if field.entity is not None:
            return self.entity(field.entity, at)
        nullable = field.nullable and field.tag is None
        return self._primitive(schema, field, at, nullable=nullable)

    def _primitive(self, schema: Any, field: _Field, at: int, *, nullable: bool) -> tuple[Any, int]:
        flexible = schema.__flexible__
        if _is_header(schema):  # a client id is never compact (RequestHeader.json)
            flexible = flexible and field.name != "client_id"
        value, size = _primitive_reader(field.kafka_type, flexible, nullable)(self._data, at)
        return value, at + size

    def _array(self, schema: Any, field: _Field, at: int) -> tuple[Any, int]:
        if schema.__flexible__:
            length, at = self._varint(at)
            length -= 1
        else:
            length, at = int.from_bytes(self._data[at : at + 4], "big", signed=True), at + 4
        if length < 0:
            return (None if field.nullable else ()), at
        if length > len(self._data) - at:
            raise Malformed(f"an array of {length} in {len(self._data) - at} bytes")
        items = []
        for _ in range(length):
            if field.entity is not None:
                item, at = self.entity(field.entity, at)
            else:
                item, at = self._primitive(schema, field, at, nullable=False)
            items.append(item)
        return tuple(items), at


@cache
def _primitive_reader(kafka_type: str, flexible: bool, nullable: bool) -> Any:  # noqa: FBT001
    return get_reader(kafka_type, flexible, nullable)


def _is_header(schema: Any) -> bool:
    return bool(schema.__name__ == "RequestHeader")


def milliseconds(value: dt.timedelta) -> int:
    return value // dt.timedelta(milliseconds=1)
