"""Kafka 0.10.2 (released 0.10.2.2): the caught-up rule, and shrinks checked twice as often; limits
for a whole fetch response (0.10.1, KIP-74), replication quotas (0.10.1, KIP-73)."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_0_9_0 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="0.10.2",
    release="0.10.2.2",
    citation="KafkaConfig.scala@0.10.2.2; spec §8, §9",
    stop_replicas="kept-together",
    reads_at_start=(*BEFORE.reads_at_start, "cluster-id", "all-configs"),
    registration_version=4,
    isr_members="replicas",
    fetch_order="rebuilt",
    received_replicas="java-set",
    controlled_shutdowns="one-by-one",
    send_backoff_ms=100,
    defaults={
        "replica.fetch.response.max.bytes": "10485760",
        "replication.quota.window.num": "11",
        "replication.quota.window.size.seconds": "1",
        "group.max.session.timeout.ms": "300000",
        "broker.rack": "",
    },
    group_record_versions=(1, 1),
    request_versions={
        "UpdateMetadata": 3,
        "Fetch": 3,
        "ListOffsets": 1,
        "CreateTopics": 1,
        "DeleteTopics": 0,
    },
)
