"""What an API of the protocol is, and the registry of those that there are.

One class per API, in a file of this package; found by a scan. An API translates in both directions
at both ends; what it cannot hand to the broker (a partition whose records are no batch, what is not
emulated) it answers by itself. Nothing here knows a particular API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
from kio.schema.errors import ErrorCode

from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import Profile
from emulator.kafka.protocol.messages import Request, Response
from emulator.registry import classes_of
from emulator.trace.values import TopicPartition
from emulator.worlds.wire.entities import Values

Knows = Mapping[str, tuple[int, int]]


class Sent(msgspec.Struct, frozen=True):
    """What of a request goes to the broker: our requests name one topic where Kafka's name many.
    `rest` is what the answer needs beside."""

    requests: tuple[Request, ...]
    rest: Any = None


class Api:
    """One API. `versions`: from which release on which version is the newest (the oldest that we
    speak is the first of `least`); inter-broker versions come from the profile."""

    name: ClassVar[str]
    key: ClassVar[int]
    sends: ClassVar[type | None] = None
    least: ClassVar[int] = 0
    newest: ClassVar[Mapping[str, int]]
    cap: ClassVar[int] = 99

    def arrived(self, entity: Any, knows: Knows) -> Sent:
        raise AssertionError(self.name)

    def answer(
        self, entity: Any, sent: Sent, responses: Sequence[Response | None]
    ) -> Values | None:
        raise AssertionError(self.name)

    def ask(self, request: Any, now_ms: int) -> Values:
        raise AssertionError(self.name)

    def response(self, entity: Any, request: Any) -> Response:
        raise AssertionError(self.name)

    def range_of(self, profile: Profile) -> tuple[int, int] | None:
        """The versions that a broker of this Kafka speaks; None where it has no such API. What
        brokers send each other is never newer than what they speak."""
        release = _number(profile.release)
        since = [v for name, v in self.newest.items() if _number(name) <= release]
        own = profile.request_versions.get(self.name, -1)
        newest = min(self.cap, max([own, *since]))
        return None if newest < self.least else (self.least, newest)


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])


@cache
def apis() -> dict[int, Api]:
    """All APIs, by key."""
    kinds = classes_of("emulator.worlds.wire", Api)
    return {api.key: api() for api in sorted(kinds, key=lambda api: api.key)}


def spoken(profile: Profile) -> dict[str, tuple[int, int]]:
    """The versions that brokers of this Kafka speak, by API."""
    ranges = ((api.name, api.range_of(profile)) for api in apis().values())
    return {name: found for name, found in ranges if found is not None}


def version_sent(profile: Profile, name: str, most: int) -> int:
    """Which version a broker sends: by its own version, or the older one whose path of ISR changes
    it has, not by negotiation (spec §11.2)."""
    older = profile.sent_before_rpc if profile.propagation == "zk" else {}
    return min(most, {**profile.request_versions, **older}.get(name, most))


def ranges_of(knows: Knows) -> list[Values]:
    """As ApiVersions tells them."""
    return [
        {"api_key": api.key, "min_version": knows[api.name][0], "max_version": knows[api.name][1]}
        for api in apis().values()
        if api.name in knows
    ]


class _Placed(Protocol):
    @property
    def partition(self) -> TopicPartition: ...


P = TypeVar("P", bound=_Placed)


def in_turn(items: Iterable[P]) -> list[tuple[str, list[P]]]:
    """Neighbours of one topic together, the order kept (FetchRequest.java toMessage)."""
    return [(t, list(group)) for t, group in groupby(items, key=lambda i: i.partition.topic)]


def by_topic(items: Iterable[P]) -> list[tuple[str, list[P]]]:
    """All of one topic together."""
    found: dict[str, list[P]] = {}
    for item in items:
        found.setdefault(item.partition.topic, []).append(item)
    return list(found.items())


def error_of(code: ErrorCode) -> Errors:
    """Codes that we do not know are unknown errors."""
    try:
        return Errors(code.value)
    except ValueError:
        return Errors.UNKNOWN_SERVER_ERROR
