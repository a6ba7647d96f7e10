"""Kafka 2.6 (released 2.6.3): 30 s of lag and 18 s of session (2.5, KIP-537), StopReplica with the
leader epoch. Leaders write the ISR to ZooKeeper themselves, for the last time by default."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_4 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.6",
    release="2.6.3",
    citation="KafkaConfig.scala@2.6.3; spec §4.4, §8, §9",
    stop_replicas="all-together",
    defaults={
        # KIP-537 (2.5): a pause of a few seconds costs a broker neither its session nor the ISR.
        "replica.lag.time.max.ms": "30000",
        "zookeeper.session.timeout.ms": "18000",
        "fetch.max.bytes": "57671680",
    },
    request_versions={"StopReplica": 3},
)
