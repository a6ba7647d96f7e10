"""Kafka 2.7 (released 2.7.2): leaders propose ISR changes to the controller (AlterIsr, KIP-497),
every 50 ms."""

from emulator.kafka.profiles.base import after
from emulator.kafka.profiles.kafka_2_6 import PROFILE as BEFORE

PROFILE = after(
    BEFORE,
    name="2.7",
    release="2.7.2",
    citation="AlterIsrManager.scala@2.7.2, ApiVersion.scala@2.7.2; spec §7, §9, §11.2",
    registration_version=5,
    propagations=("rpc", "zk"),
    request_versions={"AlterIsr": 0, "Fetch": 12},
    # Sent with an older inter.broker.protocol.version, where leaders write ISRs themselves.
    sent_before_rpc={"Fetch": 11},
)
