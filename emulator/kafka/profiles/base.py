"""What a version line is, and the registry of those that there are.

A profile is data: default settings, guards, strategies, request versions, each with where it is
read. A *guard* is a named fix that the version has (`guards/`); core code asks for one with
`GUARD in context.guards`, in one place: where Kafka's own change was made. A new line is a new file
in this package with a `PROFILE`, which says what differs from the line before it. Brokers of one
cluster may run different profiles. Nothing here knows what a guard or a setting does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

import msgspec

from emulator.kafka.profiles.guards.base import Guard, guards
from emulator.registry import modules_of

Propagation = Literal["zk", "rpc"]
"""Who writes a changed ISR: the leader, with notifications (zk), or the controller (KIP-497)."""

ControllerThreads = Literal["callbacks", "event-queue"]
"""Callbacks of several threads under one lock, or one thread with a queue (KAFKA-5028)."""

ZooKeeperClient = Literal["zkclient", "asynchronous"]
"""I0Itec's, which blocks and tries again across sessions, or Kafka's own (KAFKA-5642)."""


NewPartitions = Literal["from-cache", "read-again"]
"""Where a controller has the replicas of a partition that it creates from: what it read when the
topic changed, or (0.8) the topic's znode, read again for each partition."""


ServesFrom = Literal["controller", "registration", "end"]
"""When a broker that starts takes up what came in: before its controller starts (0.8), before it
registers (0.9, 0.10), or when all else has started."""

StopReplicas = Literal[
    "each-alone", "kept-together", "empty-then-each", "by-deletion", "all-together"
]
"""How replicas of one broker share StopReplica requests: each has its own (0.8, 0.9); those that
are not deleted share one, which is sent even if it is empty (KAFKA-4420, 0.10.2); an empty request
and then one each (1.1, an oversight); one request for deletions and one for the rest (KAFKA-8294,
2.3); one for all (KIP-570, 2.6)."""

StartRead = Literal["cluster-id", "all-configs", "transactions", "broker-configs", "live-brokers"]
"""What a broker asks ZooKeeper for when it starts, in the order in which versions learned it:
KIP-78, every entity's configuration (both 0.10.1), KIP-98 (0.11), KIP-226 (1.1), the addresses
of registered brokers, which must not be its own (2.0)."""

IsrMembers = Literal["replicas-0.9", "replicas", "ids"]
"""What a leader's Set of the ISR has in it: Replica objects, whose hash 0.10 changed, or ids
(2.4)."""


_NOTHING: Mapping[str, str] = MappingProxyType({})


class CannotPropagate(ValueError):
    """The version has no such way to propagate an ISR."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One Kafka version line. `fixed` are values that are no settings in this version: what its
    code has in their place. `propagations` begins with the one that is the default;
    `top_level_paths` are those that brokers create, where they differ from the client's own;
    `registration_version` and `topic_version` those of the JSON that it writes; `send_backoff_ms`
    how long a controller's send thread waits before it tries again; `record_batches`: records that
    come together stand in the log as one (format 2, KIP-98, 0.11); `leaders_in_request`: a follower
    looks for its new leader in the LeaderAndIsr itself, not in its metadata cache (0.9);
    `group_record_versions` those of the values that are written to `__consumer_offsets`, of an
    offset and of a group; `scala`: whose library orders its sets and maps, as recorded;
    `sent_before_rpc`: versions of requests that a broker sends while it writes ISRs itself although
    its code could ask (an inter.broker.protocol.version of 2.6)."""

    name: str
    release: str
    citation: str
    defaults: Mapping[str, str]
    fixed: Mapping[str, str] = _NOTHING
    guards: frozenset[Guard] = frozenset()
    propagations: tuple[Propagation, ...] = ("zk",)
    controller_threads: ControllerThreads = "event-queue"
    zookeeper_client: ZooKeeperClient = "asynchronous"
    request_versions: Mapping[str, int] = MappingProxyType({})
    top_level_paths: tuple[str, ...] = ()
    new_partitions: NewPartitions = "from-cache"
    registration_version: int = 4
    topic_version: int = 2
    send_backoff_ms: int = 100
    record_batches: bool = True
    leaders_in_request: bool = False
    serves_from: ServesFrom = "end"
    stop_replicas: StopReplicas = "each-alone"
    reads_at_start: tuple[StartRead, ...] = ()
    group_record_versions: tuple[int, int] = (1, 0)
    scala: Literal["2.11", "2.13"] = "2.13"
    isr_members: IsrMembers = "ids"
    sent_before_rpc: Mapping[str, int] = MappingProxyType({})

    @property
    def propagation(self) -> Propagation:
        """How this broker propagates its ISR changes."""
        return self.propagations[0]

    @property
    def values(self) -> dict[str, str]:
        """What settings begin with, those that cannot be set included."""
        return {**self.fixed, **self.defaults}

    def has_znode(self, path: str) -> bool:
        """Whether brokers of this version create it."""
        return not self.top_level_paths or path in self.top_level_paths

    def altered(self, switches: Mapping[str, bool], propagation: str = "") -> Profile:
        """This version with guards put in or taken out, and another propagation. A guard that is
        taken out brings back the settings that it removed. CannotPropagate."""
        if propagation and propagation not in self.propagations:
            can = " and ".join(self.propagations)
            raise CannotPropagate(f"Kafka {self.name} has no propagation {propagation}, only {can}")
        known = guards()
        put_in = [known[name] for name, on in switches.items() if on]
        taken_out = [known[name] for name, on in switches.items() if not on]
        back = {key: value for guard in taken_out for key, value in guard.removed.items()}
        chosen = propagation or self.propagation
        return msgspec.structs.replace(
            self,
            guards=self.guards.union(put_in).difference(taken_out),
            defaults={**back, **self.defaults},
            propagations=(chosen, *(p for p in self.propagations if p != chosen)),
        )


def after(
    before: Profile,
    *,
    name: str,
    release: str,
    citation: str,
    defaults: Mapping[str, str] = _NOTHING,
    gone: tuple[str, ...] = (),
    request_versions: Mapping[str, int] = MappingProxyType({}),
    **changes: object,
) -> Profile:
    """The line that comes after another: settings that are new or have another default, settings
    that are gone, and any other field that differs; the guards follow from the release."""
    inherited = {key: value for key, value in before.defaults.items() if key not in gone}
    settings = {**inherited, **defaults}
    return msgspec.structs.replace(
        before,
        name=name,
        release=release,
        citation=citation,
        defaults=settings,
        # What has become a setting is fixed no more.
        fixed={key: value for key, value in before.fixed.items() if key not in settings},
        guards=guards_of(release),
        request_versions={**before.request_versions, **request_versions},
        **changes,
    )


def guards_of(release: str) -> frozenset[Guard]:
    """The fixes that a release of Kafka has."""
    return frozenset(guard for guard in guards().values() if guard.is_in(release))


@cache
def profiles() -> dict[str, Profile]:
    """All version lines by name, oldest first."""
    modules = modules_of("emulator.kafka.profiles")
    versions = [vars(module)["PROFILE"] for module in modules if "PROFILE" in vars(module)]
    return {p.name: p for p in sorted(versions, key=lambda p: [int(x) for x in p.name.split(".")])}
