"""Partitions in messages: Kafka nests them by topic, our structs are flat and name their partition.

A `PartitionTable` says once which field of Kafka's holds which of ours, and goes both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from itertools import groupby
from typing import Generic, Protocol, TypeVar

from kio.schema.errors import ErrorCode

from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import Batch
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.records import read_batches, write_batches

ABSENT = -1
"""A number that an old version does not have, as Kafka's own schemas have it by default."""


class OfPartition(Protocol):
    """A struct that is about one partition."""

    @property
    def partition(self) -> TopicPartition: ...


T = TypeVar("T")
P = TypeVar("P", bound=OfPartition)
Groups = Iterable[tuple[str, list[P]]]


def by_topic(
    items: Iterable[T], partition_of: Callable[[T], TopicPartition]
) -> list[tuple[str, list[T]]]:
    """All of one topic together, in the order in which topics come first."""
    topics: dict[str, list[T]] = {}
    for item in items:
        topics.setdefault(partition_of(item).topic, []).append(item)
    return list(topics.items())


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Where Kafka has the bare numbers of a topic's partitions."""
    groups = by_topic(partitions, lambda partition: partition)
    return [(topic, [partition.partition for partition in group]) for topic, group in groups]


def error_of(code: ErrorCode) -> Errors:
    """Codes that we do not know are unknown errors."""
    try:
        return Errors(code.value)
    except ValueError:
        return Errors.UNKNOWN_SERVER_ERROR


def _batches(records: bytes | None) -> tuple[Batch, ...]:
    return tuple(read_batches(bytes(records or b"")))


_READ: Mapping[str, Callable[..., object]] = {"error_code": error_of, "records": _batches}
_WRITE: Mapping[str, Callable[..., object]] = {"records": write_batches}
"""Fields of Kafka's whose values are others of ours, by name."""


class PartitionTable(Generic[P]):
    """The partitions of a message, as structs of one class."""

    def __init__(
        self,
        struct: Callable[..., P],
        topics: str,
        partitions: str,
        fields: str,
        *,
        also: Callable[[P], Values] = lambda _: {},
        partition_of: Callable[[str, int], TopicPartition] = TopicPartition,
        adjacent: bool = False,
    ) -> None:
        """`topics`: where the list is, and what the topic's name is called in it (`topics.name`);
        `partitions` likewise (`partitions.partition_index`). `fields`: of ours, with `=` and
        Kafka's name where that is another; what a version lacks has our default, or -1. `also`:
        what we write beside. `partition_of` may refuse with ValueError. `adjacent`: only
        neighbours share a topic's entry, so that the order is kept, as in FetchRequest.java@2.6.3
        toMessage."""
        pairs = (field.partition("=") for field in fields.split())
        self._struct = struct
        self._fields = {ours: theirs or ours for ours, _, theirs in pairs}
        self._topics, self._topic = topics.split(".")
        self._partitions, self._number = partitions.split(".")
        parameters = signature(struct).parameters
        self._required = {
            name for name in self._fields if parameters[name].default is Parameter.empty
        }
        self._also, self._partition_of, self._adjacent = also, partition_of, adjacent

    def read(self, message: Entity) -> tuple[P, ...]:
        return tuple(
            self.read_entry(getattr(topic, self._topic), entry)
            for topic in getattr(message, self._topics)
            for entry in getattr(topic, self._partitions)
        )

    def read_entry(self, topic: str, entry: Entity) -> P:
        values: dict[str, object] = {}
        for ours, theirs in self._fields.items():
            if hasattr(entry, theirs):
                value, convert = getattr(entry, theirs), _READ.get(theirs)
                values[ours] = value if convert is None else convert(value)
            elif ours in self._required:
                values[ours] = ABSENT
        partition = self._partition_of(topic, getattr(entry, self._number))
        return self._struct(partition=partition, **values)

    def write(self, items: Iterable[P]) -> dict[str, list[Values]]:
        groups: Groups[P]
        if self._adjacent:
            neighbours = groupby(items, key=lambda item: item.partition.topic)
            groups = ((topic, list(group)) for topic, group in neighbours)
        else:
            groups = by_topic(items, lambda item: item.partition)
        return {
            self._topics: [
                {self._topic: topic, self._partitions: [self.write_entry(i) for i in group]}
                for topic, group in groups
            ]
        }

    def write_entry(self, item: P) -> Values:
        values = {self._number: item.partition.partition, **self._also(item)}
        for ours, theirs in self._fields.items():
            value, convert = getattr(item, ours), _WRITE.get(theirs)
            values[theirs] = value if convert is None else convert(value)
        return values
