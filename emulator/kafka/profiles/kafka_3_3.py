"""Kafka 3.3 (released 3.3.2), ZooKeeper mode: AlterPartition v2, eligible ISR members only,
corrected retries."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_8 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="3.3",
    release="3.3.2",
    citation="AlterPartitionManager.scala@3.3.2, KafkaController.scala@3.3.2; spec §7.4, §7.5, §9",
    reapers_woken=True,
    fetch_order="topic-ids",
    controller_from_metadata=True,
    reads_at_start=tuple(it for it in BEFORE.reads_at_start if it != "producer-ids"),
    request_versions={"AlterIsr": 2},
)
