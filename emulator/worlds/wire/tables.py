"""Tables that map our fields to Kafka's, in both directions.

Kafka nests partitions by topic; our structs are flat and name their partition: `PartitionTable` and
`PartitionNumbers` convert between the two.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from itertools import groupby
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

from kio.schema.errors import ErrorCode

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.entities import Entity, Values, milliseconds
from emulator.worlds.wire.records import read_batches, write_batches
from emulator.worlds.wire.topic_ids import id_of, name_of

ABSENT = -1
"""A number that an old version does not have: the default in Kafka's own schemas."""


class OfPartition(Protocol):
    """A struct for one partition."""

    @property
    def partition(self) -> TopicPartition: ...


class Table(Protocol):
    """A mapping in both directions: one of our values, and fields of a Kafka entity."""

    def read(self, entity: Entity) -> Any: ...

    def write(self, value: Any) -> Values: ...


T = TypeVar("T")
S = TypeVar("S")
P = TypeVar("P", bound=OfPartition)


class PartitionResult(NamedTuple):
    """The result for one partition of a request."""

    partition: TopicPartition
    error: Errors


def by_topic(
    items: Iterable[T], partition_of: Callable[[T], TopicPartition]
) -> list[tuple[str, list[T]]]:
    """Group by topic, in the order of each topic's first entry."""
    topics: dict[str, list[T]] = {}
    for item in items:
        topics.setdefault(partition_of(item).topic, []).append(item)
    return list(topics.items())


def error_of(code: ErrorCode) -> Errors:
    """Unknown error codes become UNKNOWN_SERVER_ERROR."""
    try:
        return Errors(code.value)
    except ValueError:
        return Errors.UNKNOWN_SERVER_ERROR


def _batches(records: bytes | None) -> tuple[Batch, ...]:
    return tuple(read_batches(bytes(records or b"")))


def _plain(value: object) -> object:
    """The plain value for one of kio's: the inverse of `entities.Field.converted`."""
    if isinstance(value, ErrorCode):
        return error_of(value)
    return milliseconds(value) if isinstance(value, dt.timedelta) else value


class TopicField:
    """The topic of an entity: its name, or in newer versions its id (KIP-516)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, entity: Entity) -> str:
        """Raises UnknownTopicId."""
        name: str | None = getattr(entity, self._name, None)
        return name_of(entity.topic_id) if name is None else name

    def write(self, topic: str) -> Values:
        return {self._name: topic, "topic_id": id_of(topic)}


class FieldTable(Generic[S]):
    """The fields of one struct."""

    def __init__(
        self,
        struct: Callable[..., S],
        fields: str,
        *,
        entries: Mapping[str, Table] = {},
        parts: Mapping[str, Table] = {},
        absent: Mapping[str, object] = {},
        also: Callable[[S], Values] = lambda _: {},
    ) -> None:
        """`fields`: of ours, with `=` and Kafka's name where that is another. `entries`: those
        that are arrays of Kafka's structs; `parts`: further ones, which take fields of the same
        entity. What a version lacks has our default; without one it is as `absent` says, or None
        where ours may be, or -1. `also`: what we write beside. A NamedTuple may be written as a
        plain tuple."""
        pairs = (field.partition("=") for field in fields.split())
        self._struct = struct
        self._fields = {ours: theirs or ours for ours, _, theirs in pairs}
        self._entries, self._parts, self._also = entries, parts, also
        hints, parameters = get_type_hints(struct), signature(struct).parameters
        self._nullable = {name for name in self._fields if type(None) in get_args(hints[name])}
        required = {n for n in self._fields if parameters[n].default is Parameter.empty}
        self._absent = {
            **{name: None if name in self._nullable else ABSENT for name in required},
            **absent,
        }

    def read(self, entity: Entity, **values: object) -> S:
        """`values`: the fields that the entity does not have."""
        for ours, theirs in self._fields.items():
            if not hasattr(entity, theirs):
                if ours in self._absent:
                    values[ours] = self._absent[ours]
                continue
            value = getattr(entity, theirs)
            if theirs == "records":
                value = _batches(value)
            elif ours in self._entries and value is not None:
                value = tuple(map(self._entries[ours].read, value))
            # Null, but our field is not nullable: use our default.
            if value is not None or ours in self._nullable:
                values[ours] = _plain(value)
        for ours, table in self._parts.items():
            values[ours] = table.read(entity)
        return self._struct(**values)

    def write(self, value: Any) -> dict[str, object]:
        item = self._struct(*value) if type(value) is tuple else value
        # First, because our own field overrides it.
        values = {**self._also(item)}
        for ours, theirs in self._fields.items():
            value = getattr(item, ours)
            if theirs == "records":
                value = write_batches(value)
            elif theirs == "error_message":
                # Kafka uses null for no value, the emulator an empty text.
                value = value or None
            elif ours in self._entries and value is not None:
                value = [self._entries[ours].write(one) for one in value]
            values[theirs] = value
        for ours, table in self._parts.items():
            values |= table.write(getattr(item, ours))
        return values


class PartitionTable(Generic[P]):
    """The partitions of a message, as structs of one class."""

    def __init__(
        self,
        struct: Callable[..., P],
        topics: str,
        partitions: str,
        fields: str,
        *,
        parts: Mapping[str, Table] = {},
        also: Callable[[P], Values] = lambda _: {},
        partition_of: Callable[[str, int], TopicPartition] = TopicPartition,
        adjacent: bool = False,
    ) -> None:
        """`topics`: where the list is, and what the topic's name is called in it (`topics.name`);
        `partitions` likewise (`partitions.partition_index`). `fields`, `parts`, `also`: see
        `FieldTable`. `partition_of` may refuse with ValueError. `adjacent`: only neighbours share a
        topic's entry, so that the order is kept, as in FetchRequest.java@2.6.3 toMessage."""
        self._topics, name = topics.split(".")
        self._topic = TopicField(name)
        self._partitions, self._number = partitions.split(".")
        self._struct, self._entry = struct, FieldTable(struct, fields, parts=parts, also=also)
        self._partition_of, self._adjacent = partition_of, adjacent

    def read(self, entity: Entity) -> tuple[P, ...]:
        return tuple(
            self._entry.read(
                entry,
                partition=self._partition_of(self._topic.read(topic), getattr(entry, self._number)),
            )
            for topic in getattr(entity, self._topics)
            for entry in getattr(topic, self._partitions)
        )

    def write(self, value: Iterable[Any]) -> dict[str, list[Values]]:
        items: list[P] = [self._struct(*one) if type(one) is tuple else one for one in value]
        groups: Iterable[tuple[str, Iterable[P]]] = by_topic(items, lambda item: item.partition)
        if self._adjacent:
            groups = groupby(items, key=lambda item: item.partition.topic)
        return {
            self._topics: [
                {
                    **self._topic.write(topic),
                    self._partitions: [
                        {self._number: item.partition.partition, **self._entry.write(item)}
                        for item in group
                    ],
                }
                for topic, group in groups
            ]
        }


class PartitionNumbers:
    """For fields where Kafka has only the numbers of a topic's partitions. Null is None."""

    def __init__(self, topics: str, numbers: str) -> None:
        """`topics`: the field with the list, and the name of the topic's field in it."""
        self._topics, name = topics.split(".")
        self._topic, self._numbers = TopicField(name), numbers

    def read(self, entity: Entity) -> tuple[TopicPartition, ...] | None:
        """Returns nothing if the version has no such list."""
        topics = getattr(entity, self._topics, ())
        if topics is None:
            return None
        return tuple(
            TopicPartition(self._topic.read(topic), number)
            for topic in topics
            for number in getattr(topic, self._numbers)
        )

    def write(self, value: Iterable[TopicPartition] | None) -> dict[str, list[Values] | None]:
        if value is None:
            return {self._topics: None}
        return {
            self._topics: [
                {
                    **self._topic.write(topic),
                    self._numbers: [partition.partition for partition in group],
                }
                for topic, group in by_topic(value, lambda partition: partition)
            ]
        }
