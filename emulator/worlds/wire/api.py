"""What an API of the protocol is, and the registry of all APIs.

There is one class per API, in a file of this package, found by a scan. An API translates in both
directions at both ends. What it cannot pass to the broker (a partition without a valid batch, an
unsupported feature) gets its response here. Nothing here knows a particular API.
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
    """The part of a request that goes to the broker: our requests name one topic where Kafka's name
    many. `answered` are the responses to the rejected rest."""

    requests: tuple[Request, ...]
    answered: tuple[Response, ...] = ()


class Api(Generic[Q, R]):
    """One API: our requests Q and responses R as Kafka's entities, and back.

    `newest`: which version is the newest, from which release on; `least` is the oldest supported
    version, `cap` the newest; those above `most_sent` are not sent and not offered, but read.
    Inter-broker versions come from the profile. An entity ignores values
    that its version does not have, so each `write` provides all values of the newest. `request` and
    `response` are the fields of both; an API whose requests or responses do not map field by field
    has methods instead. `most_entries`: the limit for all arrays of a request together. `padding`:
    zero bytes allowed after a flexible request, because a client in use sends them. `alike_from`:
    from this version on a controller's requests to all brokers differ only in the broker epoch,
    which follows two 32-bit numbers; each is written and read once (None: of this API none is).
    """

    name: ClassVar[str]
    key: ClassVar[int]
    sends: ClassVar[type | None] = None
    least: ClassVar[int] = 0
    newest: ClassVar[Mapping[str, int]]
    cap: ClassVar[int] = 99
    most_sent: ClassVar[int] = 99
    most_entries: ClassVar[int] = ENTRIES
    padding: ClassVar[int] = 0
    alike_from: ClassVar[int | None] = None
    request: ClassVar[Table]
    response: ClassVar[Table]

    def read_request(self, entity: Entity) -> Sent:
        return Sent((self.request.read(entity),))

    def write_response(self, entity: Entity, responses: Sequence[R]) -> Values | None:
        """`responses`: one for each of `Sent.requests`, then `Sent.answered`. None: no response."""
        (response,) = responses
        return self.response.write(response)

    def write_request(self, request: Q) -> Values:
        return self.request.write(request)

    def read_response(self, entity: Entity, request: Q) -> R:
        response: R = self.response.read(entity)
        return response

    def range_of(self, profile: Profile) -> tuple[int, int] | None:
        """The versions that a broker of this Kafka supports; None if it does not have the API.
        Inter-broker requests are never newer than that."""
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
    """The versions that brokers of this Kafka support, by API."""
    ranges = ((api.name, api.range_of(profile)) for api in apis().values())
    return {name: versions for name, versions in ranges if versions is not None}


def version_sent(profile: Profile, name: str, most: int) -> int:
    """The version that a broker sends: by its own version, or by the older one whose path of ISR
    changes it uses; there is no negotiation (spec §11.2)."""
    older = profile.sent_before_rpc if profile.propagation == "zk" else {}
    most = min(most, _most_sent()[name])
    return min(most, {**profile.request_versions, **older}.get(name, most))


@cache
def _most_sent() -> dict[str, int]:
    return {api.name: api.most_sent for api in apis().values()}


SENT_BY_BROKERS = (
    "Fetch",
    "OffsetForLeaderEpoch",
    "ListOffsets",
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "AlterIsr",
)
"""To other brokers; also by the controller."""
