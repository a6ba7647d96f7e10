"""The differences between two versions, and a summary of one.

Derived from the profiles alone; nothing here depends on how a difference is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.base import guards

ABSENT = "-"
THREADS = {"callbacks": "controller callbacks under one lock", "event-queue": "event queue"}
CLIENTS = {"zkclient": "ZkClient", "asynchronous": "asynchronous client"}


class Difference(msgspec.Struct, frozen=True):
    """`kind` is setting, guard, strategy or request; `a` and `b` are the two versions' values;
    `why` says what a guard does."""

    kind: str
    name: str
    a: str
    b: str
    why: str = ""


def differences(a: Profile, b: Profile) -> list[Difference]:
    """Strategies first, then guards, settings and request versions."""
    return [
        *_unequal("strategy", strategies(a), strategies(b)),
        *(
            Difference(
                "guard",
                guard.name,
                "on" if guard in a.guards else "off",
                "on" if guard in b.guards else "off",
                f"{guard.kafka}, {guard.since}: {guard.does}",
            )
            for guard in guards().values()
            if (guard in a.guards) != (guard in b.guards)
        ),
        *_unequal("setting", a.defaults, b.defaults),
        *_unequal("request", _versions(a), _versions(b)),
    ]


def strategies(profile: Profile) -> dict[str, str]:
    """A profile's strategies as text."""
    return {
        "controller-threads": profile.controller_threads,
        "zookeeper-client": profile.zookeeper_client,
        "propagation": ", ".join(profile.propagations),
        "new-partitions": profile.new_partitions,
        "registration": f"version {profile.registration_version}",
        "topic": f"version {profile.topic_version}",
        "send-backoff": f"{profile.send_backoff_ms} ms",
        "serves-from": profile.serves_from,
        "stop-replicas": profile.stop_replicas,
        "reads-at-start": ", ".join(profile.reads_at_start) or "-",
        "records": "in batches" if profile.record_batches else "each alone",
        "scala": profile.scala,
        "assignments": profile.assignments,
        "isr-members": profile.isr_members,
        "fetch-order": profile.fetch_order,
        "replicas-received": profile.received_replicas,
        "new-leaders": "of the request" if profile.leaders_in_request else "of the metadata cache",
    }


def features(profile: Profile) -> list[str]:
    """A profile's strategies, and the settings that matter most to the ISR."""
    lag, session = "replica.lag.time.max.ms", "zookeeper.session.timeout.ms"
    numbers = (
        f"lag {_seconds(profile.defaults[lag])}, session {_seconds(profile.defaults[session])}"
    )
    messages = profile.defaults.get("replica.lag.max.messages")
    return [
        numbers + (f", {messages} messages" if messages else ""),
        CLIENTS[profile.zookeeper_client],
        THREADS[profile.controller_threads],
        f"ISR by {' or '.join(profile.propagations)}",
        f"{len(profile.guards)} guards",
    ]


def _seconds(ms: str) -> str:
    return f"{int(ms) / 1000:g} s"


def _versions(profile: Profile) -> dict[str, str]:
    return {name: str(version) for name, version in profile.request_versions.items()}


def _unequal(kind: str, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted({*a, *b}):
        in_a, in_b = a.get(name, ABSENT), b.get(name, ABSENT)
        if in_a != in_b:
            yield Difference(kind, name, in_a, in_b)
