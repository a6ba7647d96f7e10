"""Kafka 2.4 (released 2.4.1): broker epochs and detected bounces (2.2), offline replicas handled at
fail-over (2.3), reassignment through the API, failed reads that leave the follower's state
unchanged.
"""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_1 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.4",
    release="2.4.1",
    citation="KafkaConfig.scala@2.4.1; spec §8, §9",
    stop_replicas="by-deletion",
    topic_version=2,
    defaults={
        "max.connections": "2147483647",
        "replica.selector.class": "",
        # KIP-389 (2.2), and the longest session timeout, for static members (KIP-345, 2.3).
        "group.max.size": "2147483647",
        "group.max.session.timeout.ms": "1800000",
    },
    group_record_versions=(3, 3),
    scala="2.13",
    isr_members="ids",
    first_logs="slowest",
    request_versions={
        "LeaderAndIsr": 4,
        "UpdateMetadata": 6,
        "Metadata": 9,
        "StopReplica": 2,
        "ControlledShutdown": 3,
        "Fetch": 11,
        "ListOffsets": 5,
        "OffsetForLeaderEpoch": 3,
        "ElectLeaders": 2,
        "AlterPartitionReassignments": 0,
    },
)
