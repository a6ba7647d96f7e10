"""Kafka 3.3 (released 3.3.2), in ZooKeeper mode, as far as it differs in what is emulated:
AlterPartition v2, members of an ISR that must be eligible, and repaired retries."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_8 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="3.3",
    release="3.3.2",
    citation="AlterPartitionManager.scala@3.3.2, KafkaController.scala@3.3.2; spec §7.4, §7.5, §9",
    request_versions={"AlterIsr": 2},
)
