"""The sections of a scenario that define the brokers, their settings and the topics.

Owns `cluster` and `topics`: boot order, settings, ZooKeeper's settings, assignments. Topics become
the first steps of the time line. Knows nothing about later actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from emulator.kafka.profiles.base import CannotPropagate
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.document import Item
from emulator.scenario.errors import instead_of
from emulator.scenario.schema import Boot, Host, Settings, Step, Storage, ZooKeeperSettings
from emulator.scenario.settings import broker_settings, check_values, topic_settings
from emulator.scenario.version import Version, unknown_profile

BROKERS_MAX = 1000
PARTITIONS_MAX = 200_000
_HOST = re.compile(r"(process|hollow|container|kafka(?= ))(?:(?<=kafka) (\d+(?:\.\d+){1,3}))?")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CLUSTER_KEYS = (
    *("brokers", "first", "config", "broker_config", "broker_profile", "zookeeper", "storage"),
)
_ZOOKEEPER_KEYS = {"tick": 500, "min_session": 1000, "max_session": 60000}
_SERVERS, SERVERS_MAX = "servers", 7


@dataclass(frozen=True)
class Cluster:
    """The brokers at the start of the run, and the topics with their number of partitions."""

    boots: tuple[Boot, ...]
    settings: Settings
    broker_settings: dict[int, Settings]
    zookeeper: ZooKeeperSettings
    version: Version
    broker_profiles: dict[int, str] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    storage: Storage = "memory"

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(sorted(boot.broker for boot in self.boots))

    def check_broker(self, item: Item, broker: int) -> int:
        """Check that the broker exists; return its id."""
        if broker not in self.brokers:
            known = ", ".join(map(str, self.brokers))
            item.fail(f"there is no broker {broker}; the cluster has {known}")
        return broker

    def check_version(self, item: Item, start: Mapping[str, object]) -> None:
        """Check that the version of a broker's start can be run."""
        broker = start.get("broker", 0)
        assert isinstance(broker, int)
        own = self.broker_profiles.get(broker, self.version.profile)
        name = str(start.get("profile") or own)
        problem = unknown_profile(name)
        if problem:
            item.fail(problem)
        propagation = str(start.get("propagation") or self.version.propagation)
        try:
            Version(name, self.version.guards, propagation).of(name)
        except CannotPropagate as error:
            item.fail(str(error))

    def check_directory(self, item: Item, broker: int, directory: int) -> None:
        """Check that the broker has this log directory."""
        settings = {**self.settings, **self.broker_settings.get(broker, {})}
        count = len(settings.get("log.dirs", "").split(","))
        if directory >= count:
            item.fail(f"broker {broker} has no log directory {directory}; log.dirs names {count}")

    def check_topic(self, item: Item, topic: str) -> str:
        """Check that the topic exists; return its name."""
        if topic not in self.topics:
            item.fail(f"there is no topic {topic}; {instead_of(topic, self.topics)}")
        return topic

    def check_partition(self, item: Item, topic: str, partition: int) -> int:
        """Check that the topic has this partition; return its number."""
        count = self.topics[self.check_topic(item, topic)]
        if partition >= count:
            item.fail(f"{topic} has no partition {partition}; it has 0 to {count - 1}")
        return partition


def read_cluster(
    document: Item, item: Item | None, version: Version, overrides: Settings
) -> Cluster:
    """The section `cluster`; `given` are the settings of the command line, which take
    precedence."""
    keys = item.mapping(_CLUSTER_KEYS) if item else {}
    config = keys.get("config")
    settings = {**broker_settings(config), **overrides}
    profile = version.of(version.profile)
    check_values(profile, settings, config or item or document, overrides)
    cluster = Cluster(
        boots=_boots(keys.get("brokers"), keys.get("first")),
        settings=settings,
        broker_settings={},
        zookeeper=_zookeeper(keys.get("zookeeper")),
        version=version,
        storage=_storage(keys.get("storage")),
    )
    # `broker_profile: {3: "2.4"}`: brokers with another version than the cluster's.
    profiles = keys["broker_profile"].mapping() if "broker_profile" in keys else {}
    for key, value in profiles.items():
        broker = cluster.check_broker(value, int(key) if key.isdecimal() else -1)
        cluster.broker_profiles[broker] = value.text()
        cluster.check_version(value, {"broker": broker})
        profile = cluster.version.of(cluster.broker_profiles[broker])
        check_values(profile, cluster.settings, value, {})
    for key, value in (keys["broker_config"].mapping() if "broker_config" in keys else {}).items():
        broker = cluster.check_broker(value, int(key) if key.isdecimal() else -1)
        cluster.broker_settings[broker] = broker_settings(value)
        runs = cluster.broker_profiles.get(broker, version.profile)
        check_values(version.of(runs), {**settings, **broker_settings(value)}, value, {})
    return cluster


def read_hosts(item: Item | None, cluster: Cluster) -> dict[int, Host]:
    """The section `hosts`: `{1: process, 2: hollow, 3: kafka 2.6.3}`."""
    hosts = {}
    for key, value in (item.mapping() if item else {}).items():
        broker = cluster.check_broker(value, int(key) if key.isdecimal() else -1)
        match = _HOST.fullmatch(value.text())
        if match is None:
            value.fail(
                f"expected process, hollow, container or kafka VERSION, not {value.text()!r}"
            )
        hosts[broker] = msgspec.convert({"kind": match[1], "version": match[2] or ""}, Host)
    return hosts


def _storage(item: Item | None) -> Storage:
    if item is None or item.text() == "memory":
        return "memory"
    if item.text() != "files":
        item.fail(f"expected memory or files, not {item.text()!r}")
    return "files"


def _boots(brokers: Item | None, first: Item | None) -> tuple[Boot, ...]:
    """The boot order: `first` (it becomes controller), then the others by id."""
    ids = list(range(1, 4)) if brokers is None else _ids(brokers)
    if first is not None:
        leader = first.whole(least=0)
        if leader not in ids:
            first.fail(f"there is no broker {leader}; the cluster has {', '.join(map(str, ids))}")
        ids = [leader, *(broker for broker in ids if broker != leader)]
    return tuple(Boot(broker) for broker in ids)


def _ids(item: Item) -> list[int]:
    if not item.is_list:
        count = item.whole(least=1)
        if count > BROKERS_MAX:
            item.fail(f"at most {BROKERS_MAX} brokers, not {count}")
        return list(range(1, count + 1))
    ids = [one.whole() for one in item.items()]
    for place, one in enumerate(item.items()):
        if ids[place] in ids[:place]:
            one.fail(f"broker {ids[place]} is there twice")
    if not ids:
        item.fail("at least one broker")
    return sorted(ids)


def _zookeeper(item: Item | None) -> ZooKeeperSettings:
    ms = dict(_ZOOKEEPER_KEYS)
    keys = item.mapping((*_ZOOKEEPER_KEYS, _SERVERS)) if item else {}
    servers = 1
    if _SERVERS in keys:
        count = keys.pop(_SERVERS)
        servers = count.whole()
        if not 1 <= servers <= SERVERS_MAX:
            count.fail(f"1 to {SERVERS_MAX} servers")
    for key, value in keys.items():
        ms[key], remainder = divmod(value.duration(), 1000)
        if remainder or ms[key] < 1:
            value.fail("whole milliseconds, at least 1ms")
    if item is not None and ms["min_session"] > ms["max_session"]:
        item.fail("min_session is above max_session")
    return ZooKeeperSettings(ms["tick"], ms["min_session"], ms["max_session"], servers)


def read_topics(item: Item | None, cluster: Cluster) -> list[Step]:
    """The section `topics`: topics to create when the cluster is up. Adds them to `cluster`."""
    steps = []
    for name, value in (item.mapping() if item else {}).items():
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            value.fail("a topic's name has letters, digits, '.', '_' and '-', 249 at most")
        keys = value.mapping(("partitions", "replication", "config"))
        if "partitions" not in keys:
            value.fail("partitions is missing: a number, or a list of each one's replicas")
        config = topic_settings(keys.get("config"))
        create = _create(name, config, keys["partitions"], keys.get("replication"), cluster)
        create.enter_topics(cluster.topics)
        steps.append(Step(0, create))
    return steps


def _create(
    name: str,
    config: dict[str, str],
    partitions: Item,
    replication: Item | None,
    cluster: Cluster,
) -> CreateTopic:
    """Use the listed replicas, or numbers of partitions and replicas, which the controller's
    broker assigns."""
    if partitions.is_list:
        if replication is not None:
            replication.fail("partitions already lists the replicas")
        return CreateTopic(name, read_assignment(partitions, cluster), config)
    count, brokers = partitions.whole(least=1), cluster.brokers
    factor = replication.whole(least=1) if replication else 1
    if count > PARTITIONS_MAX:
        partitions.fail(f"at most {PARTITIONS_MAX} partitions, not {count}")
    if replication and factor > len(brokers):
        replication.fail(f"{factor} is above the number of brokers, {len(brokers)}")
    return CreateTopic(name, (), config, count, factor)


def read_assignment(item: Item, cluster: Cluster) -> tuple[tuple[int, ...], ...]:
    """Lists of replicas, one per partition, each of different existing brokers."""
    assignment = []
    for one in item.items():
        replicas = tuple(cluster.check_broker(replica, replica.whole()) for replica in one.items())
        if not replicas or len(set(replicas)) < len(replicas):
            one.fail("at least one replica, and each broker once")
        assignment.append(replicas)
    if not assignment:
        item.fail("at least one partition")
    if len({len(replicas) for replicas in assignment}) > 1:
        item.fail("all partitions of a topic have the same number of replicas")
    return tuple(assignment)
