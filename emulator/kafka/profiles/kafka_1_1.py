"""Kafka 1.1 (released 1.1.1): its own asynchronous ZooKeeper client, which never retries across
sessions; a session's expiry is handled before a new session is opened; fetch sessions."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_1_0 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="1.1",
    release="1.1.1",
    citation="KafkaConfig.scala@1.1.1; spec §2.1, §8, §9",
    stop_replicas="empty-then-each",
    controlled_shutdowns="together",
    reads_at_start=(*BEFORE.reads_at_start, "broker-configs"),
    zookeeper_client="asynchronous",
    # The client's own list, which is the same in all versions from here on.
    top_level_paths=(),
    defaults={
        "zookeeper.max.in.flight.requests": "10",
        "max.incremental.fetch.session.cache.slots": "1000",
    },
    request_versions={"Fetch": 7},
)
