"""Kafka 2.8 (released 2.8.2): AlterIsr as soon as there is a proposal; the ZooKeeper path uses the
same ISR state machine."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_7 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.8",
    release="2.8.2",
    citation="AlterIsrManager.scala@2.8.2, ZkIsrManager.scala@2.8.2; spec §7, §9, §11.2",
    request_versions={"LeaderAndIsr": 5, "UpdateMetadata": 7},
)
