"""A version line of Kafka as data, and the registry of all lines.

A profile has default settings, guards, strategies and request versions. A *guard* is a named fix
that the version has (`guards/`). Core code tests `GUARD in context.guards` in one place: where
Kafka changed its own code. A new line is a new file in this package with a `PROFILE` that lists the
differences from the line before it. Brokers of one cluster may run different profiles. Nothing here
knows what a guard or a setting does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

import msgspec

from emulator.kafka.profiles.guards.base import Guard, guards, number
from emulator.registry import modules_of

Propagation = Literal["zk", "rpc"]
"""How a changed ISR is written: by the leader, with notifications (zk), or by the controller (rpc,
KIP-497)."""

ControllerThreads = Literal["callbacks", "event-queue"]
"""Callbacks of several threads under one lock, or one thread with a queue (KAFKA-5028)."""

ZooKeeperClient = Literal["zkclient", "asynchronous"]
"""I0Itec's ZkClient, which blocks and retries across sessions, or Kafka's own client
(KAFKA-5642)."""


NewPartitions = Literal["from-cache", "read-again"]
"""Where a controller gets the replicas of new partitions: from its read when the topic changed, or
(0.8) from the topic's znode, read again for each partition."""


ServesFrom = Literal["controller", "registration", "end"]
"""When a starting broker begins to process requests: before its controller starts (0.8), before it
registers (0.9, 0.10), or after everything else has started."""

StopReplicas = Literal[
    "each-alone", "kept-together", "empty-then-each", "by-deletion", "all-together"
]
"""How one broker's replicas share StopReplica requests. One request each (0.8, 0.9). One request
for all replicas that are not deleted, sent even if empty (KAFKA-4420, 0.10.2). An empty request and
then one each (1.1, an oversight). One request for deletions and one for the others (KAFKA-8294,
2.3). One request for all (KIP-570, 2.6).
"""

StartRead = Literal[
    "offsets-topic",
    "cluster-id",
    "all-configs",
    "transactions",
    "producer-ids",
    "broker-configs",
    "live-brokers",
]
"""What a starting broker reads from ZooKeeper, in the order of introduction: the partitions of
`__consumer_offsets` (0.9), KIP-78, every entity's configuration (both 0.10.1), KIP-98 (0.11; it
claims producer ids up to 2.8), KIP-226 (1.1), the addresses of registered brokers, which must
differ from its own (2.0).
"""

Assignments = Literal["by-partition", "by-topic"]
"""The controller's map of all assignments: one, or one of each topic (2.0 and later)."""

ReceivedReplicas = Literal["in-order", "scala-set", "java-set"]
"""How a broker reads the replicas of a control request: in their order, into Scala's immutable Set
(up to 0.9), or into Java's HashSet (0.10), which the metadata cache turns into Scala's mutable Set.
"""

ControlledShutdowns = Literal["isr-first", "one-by-one", "together"]
"""How a controller moves what a stopping broker has: one partition after the other, each to the
first other member of its ISR (up to 0.9) or of its assignment (0.10 to 1.0), or all together.
"""

IsrMembers = Literal["replicas-0.9", "replicas", "ids"]
"""The elements of a leader's ISR Set: Replica objects, whose hash changed in 0.10, or broker ids
(2.4). The order of an ISR follows from their hashes."""

FirstLogs = Literal["slowest", "slow", "late-config"]
"""What a broker's first logs cost it, as recorded. Up to 2.4 the first five take longer, most up to
0.10 and in 2.4; from 2.6 on it reads their configuration later."""

RestartedRoles = Literal["slowest", "slow", "quick"]
"""What a restarted broker's first roles cost it, as recorded. Up to 2.4 the first log that exists
takes longer, most up to 0.10, where the first response to the controller takes longer, too."""

FetchOrder = Literal["hash-map", "java-hash-map", "rebuilt", "moved", "hashed", "topic-ids"]
"""The order of a fetcher's partitions. Up to 0.9 they are in a HashMap of Scala's, and a request
groups them by topic: with groupBy (`hash-map`), in 0.9 in HashMaps of Java's. After that they come
as they were added and moved to the end. A truncation round brings a topic's partitions together; so
do additions with `rebuilt` (0.10 to 2.0). With `hashed` a round puts them into the order of a
HashMap first (2.6). With `topic-ids` those of one LeaderAndIsr are added in the order of hashes
that depend on the topics' random ids, too (3.1)."""

HASH_MAPS: tuple[FetchOrder, ...] = ("hash-map", "java-hash-map")


_NOTHING: Mapping[str, str] = MappingProxyType({})


class CannotPropagate(ValueError):
    """The version does not support this propagation of ISR changes."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One Kafka version line.

    `fixed`: values of later settings that this version has in its code. `propagations`: the first
    is the default. `top_level_paths`: the paths that brokers create, where they differ from the
    client's own list. `registration_version`, `topic_version`: versions of the JSON that brokers
    write. `send_backoff_ms`: a controller's send thread waits this long before a retry.
    `record_batches`: records sent together are stored as one batch (format 2, KIP-98, 0.11).
    `leaders_in_request`: a follower takes its leader's address from LeaderAndIsr instead of the
    metadata cache (up to 0.8.2). `group_record_versions`: versions of the values in
    `__consumer_offsets`, of an offset and of a group. `reapers_woken`: a broker that stops does not
    wait for the polls of its purgatories' reapers (3.3). `quota_reapers_at_stop`: it waits for so
    many polls of its client quotas' reapers before its fetchers end (0.9, 0.10).
    `controller_from_metadata`: it finds the controller in its metadata cache, not in ZooKeeper
    (3.3, KAFKA-9189). `scala`: the library that orders sets and maps in the recorded builds.
    `logs_roles_last`: the state change log has a role when fetchers have changed and delayed
    requests are completed ("Completed LeaderAndIsr request", up to 2.4), not before that ("starts
    at leader epoch"). `sent_before_rpc`: request versions of a broker that still writes ISRs itself
    although its code supports AlterIsr (inter.broker.protocol.version 2.6).
    """

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
    received_replicas: ReceivedReplicas = "in-order"
    serves_from: ServesFrom = "end"
    stop_replicas: StopReplicas = "each-alone"
    reads_at_start: tuple[StartRead, ...] = ()
    group_record_versions: tuple[int, int] = (1, 0)
    scala: Literal["2.11", "2.13"] = "2.13"
    isr_members: IsrMembers = "ids"
    fetch_order: FetchOrder = "hashed"
    reapers_woken: bool = False
    quota_reapers_at_stop: int = 0
    controller_from_metadata: bool = False
    controlled_shutdowns: ControlledShutdowns = "together"
    first_logs: FirstLogs = "late-config"
    restarted_roles: RestartedRoles = "quick"
    logs_roles_last: bool = False
    assignments: Assignments = "by-partition"
    sent_before_rpc: Mapping[str, int] = MappingProxyType({})

    @property
    def propagation(self) -> Propagation:
        """How this broker propagates its ISR changes."""
        return self.propagations[0]

    @property
    def fetch_errors_are_unreadable(self) -> bool:
        """0.9: the response to a fetch that failed as a whole has version 0, whatever the request's
        (FetchRequest.scala@0.9.0.1 handleError). The follower closes the connection."""
        return self.request_versions["Fetch"] == 1

    @property
    def values(self) -> dict[str, str]:
        """The initial values of all settings, including those that cannot be set."""
        return {**self.fixed, **self.defaults}

    def has_znode(self, path: str) -> bool:
        """Whether brokers of this version create the znode."""
        return not self.top_level_paths or path in self.top_level_paths

    def altered(self, switches: Mapping[str, bool], propagation: str = "") -> Profile:
        """This version with guards added or removed, and another propagation. Removing a guard
        restores the settings that it removed. Raises CannotPropagate."""
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
    """The next line after `before`: new or changed settings, removed settings (`gone`), and any
    other field that differs. The guards follow from the release."""
    inherited = {key: value for key, value in before.defaults.items() if key not in gone}
    settings = {**inherited, **defaults}
    return msgspec.structs.replace(
        before,
        name=name,
        release=release,
        citation=citation,
        defaults=settings,
        # A value that has become a setting is no longer fixed.
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


def profile_of(release: str) -> str:
    """The profile of a release, or of the line before it that has one."""
    oldest, *known = profiles()
    before = [name for name in known if number(name) <= number(release)[: len(number(name))]]
    return before[-1] if before else oldest
