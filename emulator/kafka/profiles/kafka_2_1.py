"""Kafka 2.1 (released 2.1.1): fenced controller writes, fetches fenced by leader epoch, no shrink
of a follower at the log end, joining from the epoch's start (2.0.1), truncation in several rounds
(2.0).
"""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_1_1 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.1",
    release="2.1.1",
    citation="KafkaConfig.scala@2.1.1; spec §2.6, §3.3, §3.4, §5.4, §8, §9",
    # KIP-186 (2.0): a week instead of a day.
    defaults={"offsets.retention.minutes": "10080"},
    group_record_versions=(3, 2),
    fetch_order="moved",
    assignments="by-topic",
    reads_at_start=(*BEFORE.reads_at_start, "live-brokers"),
    request_versions={"Fetch": 10, "ListOffsets": 4, "OffsetForLeaderEpoch": 2, "Metadata": 7},
)
