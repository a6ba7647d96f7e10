"""What an API of the protocol is, and the registry of those that there are.

One class per API, in a file of this package; found by a scan. An API translates in both directions
at both ends; what it cannot hand to the broker (a partition whose records are no batch, what is not
emulated) it answers by itself. Nothing here knows a particular API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Generic, TypeVar

import msgspec

from emulator.kafka.profiles.base import Profile
from emulator.kafka.protocol.messages import Request, Response
from emulator.registry import classes_of
from emulator.worlds.wire.decoder import ENTRIES
from emulator.worlds.wire.entities import Entity, Values
from emulator.worlds.wire.tables import Table

Knows = Mapping[str, tuple[int, int]]

Q = TypeVar("Q")
R = TypeVar("R")


class Sent(msgspec.Struct, frozen=True):
    """What of a request goes to the broker: our requests name one topic where Kafka's name many.
    `answered` are responses to what does not: it was refused here."""

    requests: tuple[Request, ...]
    answered: tuple[Response, ...] = ()


class Api(Generic[Q, R]):
    """One API: our requests Q and responses R as Kafka's entities, and back.

    `newest`: from which release on which version is the newest; the oldest that we speak is
    `least`, the newest `cap`. Inter-broker versions come from the profile. What a version does not
    have is passed over when its entity is made, so each `write` says all that the newest has.
    `request` and `response` are the fields of both; an API whose requests or responses are no
    structs of ours, field by field, has methods of its own instead.
    `most_entries`: of all arrays of a request together. `padding`: zero bytes that may follow a
    flexible request, because a client in use sends them."""

    name: ClassVar[str]
    key: ClassVar[int]
    sends: ClassVar[type | None] = None
    least: ClassVar[int] = 0
    newest: ClassVar[Mapping[str, int]]
    cap: ClassVar[int] = 99
    most_entries: ClassVar[int] = ENTRIES
    padding: ClassVar[int] = 0
    request: ClassVar[Table]
    response: ClassVar[Table]

    def read_request(self, entity: Entity) -> Sent:
        return Sent((self.request.read(entity),))

    def write_response(self, entity: Entity, responses: Sequence[R]) -> Values | None:
        """`responses`: one for each of `Sent.requests`, then `Sent.answered`. None: no answer."""
        (response,) = responses
        return self.response.write(response)

    def write_request(self, request: Q) -> Values:
        return self.request.write(request)

    def read_response(self, entity: Entity, request: Q) -> R:
        response: R = self.response.read(entity)
        return response

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
def apis() -> dict[int, Api[Request, Response]]:
    """All APIs, by key."""
    kinds = classes_of("emulator.worlds.wire", Api)
    return {api.key: api() for api in sorted(kinds, key=lambda api: api.key)}


def supported_versions(profile: Profile) -> dict[str, tuple[int, int]]:
    """The versions that brokers of this Kafka speak, by API."""
    ranges = ((api.name, api.range_of(profile)) for api in apis().values())
    return {name: versions for name, versions in ranges if versions is not None}


def version_sent(profile: Profile, name: str, most: int) -> int:
    """Which version a broker sends: by its own version, or the older one whose path of ISR changes
    it has, not by negotiation (spec §11.2)."""
    older = profile.sent_before_rpc if profile.propagation == "zk" else {}
    return min(most, {**profile.request_versions, **older}.get(name, most))
