"""Kafka 2.6 (released 2.6.3): a lag time of 30 s and a session timeout of 18 s (2.5, KIP-537),
StopReplica with the leader epoch. The last version in which leaders write the ISR to ZooKeeper by
default.
"""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_4 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.6",
    release="2.6.3",
    citation="KafkaConfig.scala@2.6.3; spec §4.4, §8, §9",
    stop_replicas="all-together",
    fetch_order="hashed",
    first_logs="late-config",
    restarted_roles="quick",
    logs_roles_last=False,
    defaults={
        # KIP-537 (2.5): a pause of a few seconds costs a broker neither its session nor its place
        # in the ISR.
        "replica.lag.time.max.ms": "30000",
        "zookeeper.session.timeout.ms": "18000",
        "fetch.max.bytes": "57671680",
    },
    request_versions={"StopReplica": 3},
)
