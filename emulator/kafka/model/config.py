"""Kafka's settings by Kafka's names, with types and checks.

`KafkaConfig` has one attribute per property (dots become underscores); the defaults come from a
profile. Settings that only some versions have get their default here. Sources:
KafkaConfig.scala@2.6.3 (spec §8), LogConfig.scala@2.6.3. Nothing here knows where settings come
from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_type_hints

import msgspec

WITHOUT_EFFECT = frozenset({"log.index.size.max.bytes"})
"""Settings of log files: the emulated log has no indexes (docs/limits.md)."""

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"

DERIVED = frozenset({"zookeeper.connection.timeout.ms"})
"""Settings whose default is another setting's value."""


class BadSetting(ValueError):
    """An unknown setting, or a value that is not allowed."""


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's settings. Times in milliseconds, sizes in bytes, rates in bytes per second."""

    replica_lag_time_max_ms: int
    replica_fetch_wait_max_ms: int
    replica_fetch_min_bytes: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    num_replica_fetchers: int
    num_io_threads: int
    num_network_threads: int
    background_threads: int
    request_timeout_ms: int
    controller_socket_timeout_ms: int
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int
    zookeeper_max_in_flight_requests: int
    min_insync_replicas: int
    default_replication_factor: int
    num_partitions: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    unclean_leader_election_enable: bool
    log_dirs: str
    log_flush_interval_messages: int
    delete_topic_enable: bool
    auto_create_topics_enable: bool
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_commit_timeout_ms: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offset_metadata_max_bytes: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    socket_request_max_bytes: int
    queued_max_request_bytes: int
    max_connections: int
    max_connections_per_ip: int
    connections_max_idle_ms: int
    log_segment_bytes: int = 1 << 30
    log_roll_ms: int = 7 * 24 * 3_600_000
    log_retention_ms: int = 7 * 24 * 3_600_000
    log_retention_bytes: int = -1
    log_retention_check_interval_ms: int = 300_000
    log_cleanup_policy: str = "delete"
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_lag_max_messages: int = 4000
    controller_message_queue_size: int = 2**31 - 1
    broker_rack: str = ""
    replica_selector_class: str = ""

    @classmethod
    def of(cls, defaults: Mapping[str, str], settings: Mapping[str, str]) -> KafkaConfig:
        """Parse settings over defaults; BadSetting names what is wrong and what is allowed."""
        known = property_names()
        values: dict[str, int | bool | str] = {}
        for key, text in {**defaults, **settings}.items():
            if key in WITHOUT_EFFECT:
                continue
            if key not in known:
                raise BadSetting(f"unknown setting {key}")
            values[known[key]] = _parse(key, text)
        # Kafka uses the session timeout as the default of the connection timeout
        # (KafkaConfig.scala@2.6.3 zkConnectionTimeoutMs).
        if "zookeeper.connection.timeout.ms" not in {*defaults, *settings}:
            values["zookeeper_connection_timeout_ms"] = values["zookeeper_session_timeout_ms"]
        config = msgspec.convert(values, cls)
        config.check()
        return config

    @property
    def log_directories(self) -> int:
        """The number of log directories; their names do not matter."""
        return len(self.log_dirs.split(","))

    def properties(self) -> dict[str, str]:
        """All settings by Kafka's names, as text."""
        return {name: _text(getattr(self, field)) for name, field in property_names().items()}

    def check(self) -> None:
        """Reject what Kafka refuses to start with (KafkaConfig.validateValues)."""
        # A caught-up follower fetches once per wait: with a longer wait the leader would count it
        # as out of sync.
        if self.replica_fetch_wait_max_ms > self.replica_lag_time_max_ms:
            raise BadSetting("replica.fetch.wait.max.ms must not be above replica.lag.time.max.ms")
        # The follower would close the connection while the leader still holds its fetch.
        if self.replica_fetch_wait_max_ms > self.replica_socket_timeout_ms:
            raise BadSetting(
                "replica.fetch.wait.max.ms must not be above replica.socket.timeout.ms"
            )
        if self.replica_selector_class not in ("", RACK_AWARE_SELECTOR, LEADER_SELECTOR):
            raise BadSetting(
                f"replica.selector.class: {self.replica_selector_class!r} is not emulated"
                f" (try {RACK_AWARE_SELECTOR})"
            )
        if not all(name.strip() for name in self.log_dirs.split(",")):
            raise BadSetting(f"log.dirs: {self.log_dirs!r} has a directory without a name")
        for name in (
            "num_io_threads",
            "num_network_threads",
            "num_replica_fetchers",
            "replica_lag_time_max_ms",
            "log_flush_interval_messages",
            "controller_message_queue_size",
            "socket_request_max_bytes",
            "offsets_retention_minutes",
            "offsets_retention_check_interval_ms",
        ):
            if getattr(self, name) < 1:
                raise BadSetting(f"{name.replace('_', '.')} must be at least 1")
        for name in ("max_connections", "max_connections_per_ip"):
            if getattr(self, name) < 0:
                raise BadSetting(f"{name.replace('_', '.')} must not be negative")
        # A single request must fit into the limit for all requests in flight.
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise BadSetting("queued.max.request.bytes must not be below socket.request.max.bytes")


def property_names() -> dict[str, str]:
    """Kafka's property names to attribute names of KafkaConfig."""
    return {field.replace("_", "."): field for field in KafkaConfig.__struct_fields__}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_types = get_type_hints(KafkaConfig)


def _parse(key: str, text: str) -> int | bool | str:
    expected = _types[key.replace(".", "_")]
    if expected is str:
        return str(text).strip()
    # Kafka's ConfigDef accepts booleans in any case.
    lowered = str(text).strip().lower()
    if expected is bool:
        if lowered not in ("true", "false"):
            raise BadSetting(f"{key}: {text!r} is neither true nor false")
        return lowered == "true"
    try:
        return int(lowered)
    except ValueError:
        raise BadSetting(f"{key}: {text!r} is not a whole number") from None


UNCLEAN_ELECTION = "unclean.leader.election.enable"


def unclean_election(settings: Mapping[str, str], *, default: bool) -> bool:
    """Whether these settings allow unclean elections: those of a topic, or of a running broker
    after a change. `default` applies where they do not have the property (LogConfig.fromProps)."""
    text = settings.get(UNCLEAN_ELECTION)
    return default if text is None else text.strip().lower() == "true"


TOPIC_PROPERTIES = frozenset(
    {
        "min.insync.replicas",
        UNCLEAN_ELECTION,
        "flush.messages",
        "cleanup.policy",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
)
"""Topic settings that the emulator supports; others are stored in ZooKeeper without effect."""

DYNAMIC_BROKER_PROPERTIES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        UNCLEAN_ELECTION,
    }
)
"""Broker settings that can change at runtime and that the emulator supports."""
