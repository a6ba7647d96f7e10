"""Kafka 0.9.0 (released 0.9.0.1): lag by time only, notifications of ISR changes."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_0_8_2 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="0.9.0",
    release="0.9.0.1",
    citation="KafkaConfig.scala@0.9.0.1; spec §8, §9",
    registration_version=2,
    serves_from="registration",
    new_partitions="from-cache",
    fetch_order="java-hash-map",
    reads_at_start=("offsets-topic",),
    leaders_in_request=False,
    quota_reapers_at_stop=2,
    defaults={
        "replica.fetch.backoff.ms": "1000",
        "request.timeout.ms": "30000",
        "offset.metadata.max.bytes": "4096",
        "group.min.session.timeout.ms": "6000",
        "group.max.session.timeout.ms": "30000",
    },
    # KAFKA-1546: a burst of messages made followers lag although they kept up in time.
    gone=("replica.lag.max.messages", "controller.message.queue.size"),
    top_level_paths=(
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/config/topics",
        "/config/clients",
        "/admin/delete_topics",
        "/brokers/seqid",
        "/isr_change_notification",
    ),
    request_versions={"UpdateMetadata": 1, "ControlledShutdown": 1, "Fetch": 1},
)
