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
from typing import Any, ClassVar, Protocol, cast, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer, readers
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._parse import get_reader

from emulator.worlds.wire.errors import Malformed

Values = Mapping[str, object]
"""What a message is to say, by the names of its fields in Kafka's newest schema."""


class Entity(Protocol):
    """One of kio's dataclasses. Which fields it has its version says: an old one lacks some."""

    __version__: ClassVar[int]

    def __getattr__(self, name: str) -> Any: ...


class Schema(Protocol):
    """The class of an entity: a message of one version, or a struct inside of it."""

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


class _Field:
    """How one field of a schema is written and read."""

    def __init__(self, field: dataclasses.Field[Any]) -> None:
        self.name = field.name
        arms = [a for a in (field.type, *get_args(field.type)) if a is not None]
        self.many = any(get_origin(arm) is tuple for arm in arms)
        self.schema = next(filter(None, map(_nested_schema, arms)), None)
        self.kafka_type = field.metadata.get("kafka_type", "")
        self.convert = _CONVERTED.get(self.kafka_type)
        # kio says it in the type alone: `str | None`, `tuple[...] | None`.
        self.nullable = type(None) in get_args(field.type)
        self.tag = field.metadata.get("tag")
        self.default = None if self.tag is None else get_tagged_field_default(field)

    def converted(self, value: Any) -> object:
        """What kio wants in the place of a plain value."""
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
def _fields(schema: Any) -> tuple[_Field, ...]:
    return tuple(_Field(field) for field in dataclasses.fields(schema))


def make(schema: Schema, values: Values) -> Entity:
    """An entity from the values that it has fields for; what is not given has its default."""
    filled = {f.name: f.converted(values[f.name]) for f in _fields(schema) if f.name in values}
    return schema(**filled)


def request_schema(key: int, version: int) -> Schema:
    return cast("Schema", load_request_schema(key, version))


def response_schema(key: int, version: int) -> Schema:
    return cast("Schema", load_response_schema(key, version))


def write(out: io.BytesIO, entity: Entity) -> None:
    schema: Any = type(entity)
    entity_writer(schema)(out, entity)


def read(schema: Schema, data: bytes, offset: int) -> tuple[Entity, int]:
    """An entity and the offset behind it. Malformed, whatever kio stumbled over: these bytes come
    from strangers."""
    try:
        return _Reader(data).entity(schema, offset)
    except Malformed as error:
        raise Malformed(f"{schema.__name__}: {error}") from None
    except Exception as error:  # noqa: BLE001
        raise Malformed(f"{schema.__name__}: {type(error).__name__}: {error}") from None


class _Reader:
    """One message's bytes. Every method takes an offset, and returns a value and the offset behind
    it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def entity(self, schema: Schema, at: int) -> tuple[Entity, int]:
        values: dict[str, object] = {}
        tagged: dict[int, _Field] = {}
        for field in _fields(schema):
            if field.tag is None:
                values[field.name], at = self._field(schema, field, at)
            else:
                values[field.name], tagged[field.tag] = field.default, field
        if schema.__flexible__:
            count, at = self._varint(at)
            for _ in range(count):
                tag, at = self._varint(at)
                size, at = self._varint(at)
                if size > len(self._data) - at:
                    raise Malformed(f"a tagged field of {size} bytes")
                if tag in tagged:
                    values[tagged[tag].name], _end = self._field(schema, tagged[tag], at)
                # By its declared size, not by what was read of it: a newer sender's field may go on
                # where ours ends, and one that nobody knows is passed over (KIP-482).
                at += size
        return schema(**values), at

    def _varint(self, at: int) -> tuple[int, int]:
        value, size = readers.read_unsigned_varint(self._data, at)
        return value, at + size

    def _field(self, schema: Schema, field: _Field, at: int) -> tuple[object, int]:
        if not field.many:
            if field.schema is not None:
                return self.entity(field.schema, at)
            # A tagged field that is null is left out: where there is one, it has a value.
            nullable = field.nullable and field.tag is None
            return self._primitive(schema, field, at, nullable=nullable)
        if schema.__flexible__:
            length, at = self._varint(at)
            length -= 1
        else:
            length, at = int.from_bytes(self._data[at : at + 4], "big", signed=True), at + 4
        if length < 0:
            return (None if field.nullable else ()), at
        # Each item has at least one byte: a length that a stranger made up allocates nothing.
        if length > len(self._data) - at:
            raise Malformed(f"an array of {length} in {len(self._data) - at} bytes")
        items: list[object] = []
        for _ in range(length):
            item: object
            if field.schema is not None:
                item, at = self.entity(field.schema, at)
            else:
                item, at = self._primitive(schema, field, at, nullable=False)
            items.append(item)
        return tuple(items), at

    def _primitive(
        self, schema: Schema, field: _Field, at: int, *, nullable: bool
    ) -> tuple[object, int]:
        flexible = schema.__flexible__
        # A client id is never compact, so that a broker can read it from a request whose version it
        # does not know (RequestHeader.json, KIP-511).
        if field.name == "client_id" and schema.__name__ == "RequestHeader":
            flexible = False
        value, size = _primitive_reader(field.kafka_type, flexible, nullable)(self._data, at)
        return value, at + size


@cache
def _primitive_reader(
    kafka_type: str,
    flexible: bool,  # noqa: FBT001
    nullable: bool,  # noqa: FBT001
) -> Callable[[bytes, int], tuple[object, int]]:
    return get_reader(kafka_type, flexible, nullable)


def milliseconds(value: dt.timedelta) -> int:
    return value // dt.timedelta(milliseconds=1)
