"""Untrusted bytes to kio's entities, by kio's schemas, strictly.

A length is at most the remaining size, and negative only for null; text is UTF-8 without NUL; a
boolean is 0 or 1, an enum one of its numbers; a tagged field has exactly its declared length. A
message's total number of entries is limited before any is created (`most_entries`): an entry costs
the receiver a hundred times as much as the sender. Unknown tagged fields are skipped (KIP-482).
Stricter than Kafka, which accepts any negative length as null.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from functools import cache
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial.errors import OutOfBoundValue
from kio.serial.readers import tz_aware_from_i64

from emulator.worlds.wire.entities import Entity, Field, Schema, fields_of
from emulator.worlds.wire.errors import Malformed

ENTRIES = 10_000
"""What a request may hold where its API says nothing else: entries of all its arrays together."""

MOST_ENTRIES = 100_000
"""The same for requests between brokers, which name many partitions, and for responses."""

ENTRIES_OF_CONTROL = 1_000_000
"""The same for a controller's requests: a new one names all partitions at once, with ISR and
replicas; 120,000 partitions of three replicas fit."""

ENUMS: Mapping[str, frozenset[int]] = {
    "isolation_level": frozenset({0, 1}),
    "security_protocol": frozenset({0, 1, 2, 3}),
    "election_type": frozenset({0, 1}),
    "config_operation": frozenset({0, 1, 2, 3}),
    "key_type": frozenset({0, 1}),
}
"""Fields that are numbers in Kafka's schemas and enums in its code, where any other number raises
(IsolationLevel.forId, SecurityProtocol.forId, ...)."""


def read(
    schema: Schema, data: bytes, offset: int, most_entries: int = MOST_ENTRIES
) -> tuple[Entity, int]:
    """An entity and the offset behind it. Malformed says what is wrong, and at which byte."""
    cursor = _Cursor(data, offset, most_entries)
    try:
        return _entity_reader(schema)(cursor), cursor.at
    except Malformed as error:
        raise Malformed(f"{schema.__name__}: {error}") from None


class _Cursor:
    """The position in a message, and how many entries it may still have."""

    __slots__ = ("at", "data", "entries", "most_entries")

    def __init__(self, data: bytes, at: int, most_entries: int) -> None:
        self.data, self.at = data, at
        self.entries = self.most_entries = most_entries

    def take(self, size: int, what: str) -> bytes:
        """The next `size` bytes."""
        at, end = self.at, self.at + size
        if end > len(self.data):
            raise Malformed(f"{what} of {size} bytes at byte {at}, {len(self.data) - at} are left")
        self.at = end
        return self.data[at:end]

    def varint(self) -> int:
        """An unsigned number of at most 31 bits, as used for lengths and tags."""
        value, data = 0, self.data
        for shift in range(0, 35, 7):
            if self.at >= len(data):
                raise Malformed(f"a number at byte {self.at}, nothing is left")
            byte = data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 31:
                    break
                return value
        raise Malformed(f"a number before byte {self.at} has more than 31 bits")

    def count(self, entries: int) -> None:
        """This many more entries follow."""
        self.entries -= entries
        if self.entries < 0:
            raise Malformed(f"more than {self.most_entries} entries")


_Read = Callable[[_Cursor], object]


def _number_reader(form: str, what: str) -> Callable[[_Cursor], int]:
    unpack, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def read_number(cursor: _Cursor) -> int:
        at = cursor.at
        try:
            (value,) = unpack(cursor.data, at)
        except struct.error:
            raise Malformed(f"{what} at byte {at}, {len(cursor.data) - at} are left") from None
        cursor.at = at + size
        return int(value)

    return read_number


_int16, _int32, _int64 = (
    _number_reader(form, f"a number of {struct.calcsize(form)} bytes")
    for form in (">h", ">i", ">q")
)

_NUMBERS: Mapping[str, tuple[int, _Read]] = {
    name: (struct.calcsize(form), _number_reader(form, f"an {name}"))
    for name, form in {
        "int8": ">b",
        "int16": ">h",
        "int32": ">i",
        "int64": ">q",
        "uint8": ">B",
        "uint16": ">H",
        "uint32": ">I",
        "uint64": ">Q",
    }.items()
}


def _read_bool(cursor: _Cursor) -> bool:
    byte = cursor.take(1, "a truth value")[0]
    if byte > 1:
        raise Malformed(f"a truth value of {byte} at byte {cursor.at - 1}")
    return byte == 1


def _read_float(cursor: _Cursor) -> float:
    return float(struct.unpack(">d", cursor.take(8, "a number"))[0])


def _read_uuid(cursor: _Cursor) -> UUID | None:
    data = cursor.take(16, "an id")
    return UUID(bytes=data) if any(data) else None


def _read_error(cursor: _Cursor) -> ErrorCode:
    code = _int16(cursor)
    try:
        return ErrorCode(code)
    except ValueError:
        raise Malformed(f"error code {code} is not known") from None


def _duration_reader(number: Callable[[_Cursor], int]) -> _Read:
    def read_duration(cursor: _Cursor) -> dt.timedelta:
        value = number(cursor)
        try:
            return dt.timedelta(milliseconds=value)
        except OverflowError:
            raise Malformed(f"a duration of {value} ms") from None

    return read_duration


def _time_reader(*, nullable: bool) -> _Read:
    def read_time(cursor: _Cursor) -> dt.datetime | None:
        value = _int64(cursor)
        if value == -1 and nullable:
            return None
        try:
            return tz_aware_from_i64(value)  # type: ignore[arg-type]
        except (ValueError, OverflowError, OSError, OutOfBoundValue):  # the last before 1970
            raise Malformed(f"a time of {value} ms") from None

    return read_time


_OTHERS: Mapping[str, tuple[int, _Read]] = {
    "bool": (1, _read_bool),
    "uuid": (16, _read_uuid),
    "error_code": (2, _read_error),
    "timedelta_i32": (4, _duration_reader(_int32)),
    "timedelta_i64": (8, _duration_reader(_int64)),
    "float64": (8, _read_float),
}
"""Values of one size: that, and how they are read."""


def _size_reader(
    what: str, number: Callable[[_Cursor], int], *, flexible: bool, nullable: bool
) -> Callable[[_Cursor], int]:
    """Reads the length of a string, of bytes or of an array; -1 is null. A flexible message stores
    the length plus one, and 0 for null."""

    def read_size(cursor: _Cursor) -> int:
        at = cursor.at
        size = cursor.varint() - 1 if flexible else number(cursor)
        if size < 0 and not (nullable and size == -1):
            raise Malformed(f"{what} with length {size} at byte {at}")
        return size

    return read_size


def _string_reader(*, flexible: bool, nullable: bool) -> _Read:
    size_of = _size_reader("a string", _int16, flexible=flexible, nullable=nullable)

    def read_string(cursor: _Cursor) -> str | None:
        size = size_of(cursor)
        if size < 0:
            return None
        data = cursor.take(size, "a string")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Malformed(f"a string before byte {cursor.at} is not UTF-8") from None
        if "\0" in text:
            raise Malformed(f"a string before byte {cursor.at} has a NUL")
        return text

    return read_string


def _bytes_reader(*, flexible: bool, nullable: bool) -> _Read:
    size_of = _size_reader("bytes", _int32, flexible=flexible, nullable=nullable)

    def read_bytes(cursor: _Cursor) -> bytes | None:
        size = size_of(cursor)
        return None if size < 0 else cursor.take(size, "bytes")

    return read_bytes


def _enum_reader(name: str, number: _Read) -> _Read:
    known = ENUMS[name]

    def read_enum(cursor: _Cursor) -> object:
        value = number(cursor)
        if value not in known:
            raise Malformed(f"{name} {value}: one of {sorted(known)}")
        return value

    return read_enum


def _value_reader(schema: Schema, field: Field) -> tuple[int, _Read]:
    """How a value of a field, or of its array, is read, and its minimum size in bytes."""
    if field.schema is not None:
        return _least_size(field.schema), _entity_reader(field.schema)
    flexible, kind = schema.__flexible__, field.kafka_type
    # A client id never has the compact format, so that a broker can read it from a request of an
    # unknown version (RequestHeader.json, KIP-511).
    if field.name == "client_id" and schema.__name__ == "RequestHeader":
        flexible = False
    # For an array nullability belongs to the array; a tagged field that is null is left out.
    nullable = field.nullable and field.tag is None and not field.many
    if kind in _NUMBERS:
        size, number = _NUMBERS[kind]
        return size, _enum_reader(field.name, number) if field.name in ENUMS else number
    if kind == "string":
        return 1 if flexible else 2, _string_reader(flexible=flexible, nullable=nullable)
    if kind in ("bytes", "records"):
        return 1 if flexible else 4, _bytes_reader(flexible=flexible, nullable=nullable)
    if kind == "datetime_i64":
        return 8, _time_reader(nullable=nullable)
    return _OTHERS[kind]


def _field_reader(schema: Schema, field: Field) -> tuple[int, _Read]:
    least, read_value = _value_reader(schema, field)
    if not field.many:
        return least, read_value
    flexible = schema.__flexible__
    size_of = _size_reader("an array", _int32, flexible=flexible, nullable=field.nullable)

    def read_array(cursor: _Cursor) -> tuple[object, ...] | None:
        length = size_of(cursor)
        if length < 0:
            return None
        # Checked before any entry is created: the rest of the message must be able to hold them
        # all.
        left = len(cursor.data) - cursor.at
        if length * least > left:
            raise Malformed(f"an array of {length} in {left} bytes")
        cursor.count(length)
        return tuple([read_value(cursor) for _ in range(length)])

    return 1 if flexible else 4, read_array


@cache
def _least_size(schema: Schema) -> int:
    """The minimum size in bytes."""
    untagged = (field for field in fields_of(schema) if field.tag is None)
    return sum(_field_reader(schema, f)[0] for f in untagged) + int(schema.__flexible__)


@cache
def _entity_reader(schema: Schema) -> Callable[[_Cursor], Entity]:
    plain: list[tuple[str, _Read]] = []
    tagged: dict[int, tuple[str, _Read]] = {}
    defaults: dict[str, object] = {}
    for field in fields_of(schema):
        _, read_field = _field_reader(schema, field)
        if field.tag is None:
            plain.append((field.name, read_field))
        else:
            tagged[field.tag], defaults[field.name] = (field.name, read_field), field.default

    def read_entity(cursor: _Cursor) -> Entity:
        return schema(**{name: read_field(cursor) for name, read_field in plain})

    def read_flexible(cursor: _Cursor) -> Entity:
        values = {name: read_field(cursor) for name, read_field in plain}
        values.update(defaults)
        before, count = -1, cursor.varint()
        cursor.count(count)
        for _ in range(count):
            tag, size = cursor.varint(), cursor.varint()
            if tag <= before:  # TaggedFields.java@2.6.3 read
                raise Malformed(f"tagged field {tag} after {before}")
            before, at = tag, cursor.at
            cursor.take(size, f"tagged field {tag}")
            if tag in tagged:
                name, read_field = tagged[tag]
                end, cursor.at = cursor.at, at
                values[name] = read_field(cursor)
                if cursor.at != end:
                    raise Malformed(f"tagged field {tag} of {size} bytes has {cursor.at - at}")
        return schema(**values)

    return read_flexible if schema.__flexible__ else read_entity
