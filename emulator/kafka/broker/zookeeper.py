"""The ZooKeeper client of a broker's version.

Owns the choice between I0Itec's ZkClient and Kafka's own client, and the mapping of a version's
guards to requests. It does not know what the client is used for.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext, KernelThreads, TraceProbe
from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.controller import (
    BROKER_EPOCHS,
    CALLBACKS_OUTSIDE_THE_LOCK,
    COMMAND_LISTED_BEFORE_DELETION,
    ONLY_A_DEAD_SESSION_IS_REPLACED,
    OWN_EPHEMERAL_CHECKED,
    STALE_REGISTRATION_REPLACED,
)
from emulator.kafka.profiles.guards.isr import OWN_WRITE_RECOGNISED
from zk.client.blocking_client import BlockingZkClient
from zk.client.client import ZooKeeperClient
from zk.client.client_version import ClientVersion
from zk.scala.library import LIBRARIES
from zk.wire import Service

BLOCKING = "zkclient"


def client_of(context: BrokerContext, service: Service) -> ZooKeeperClient:
    """Create this process's client, which starts to connect."""
    # I0Itec's client repeats a request in the next session; Kafka's own never does (KAFKA-5642).
    blocking = context.profile.zookeeper_client == BLOCKING
    kind = BlockingZkClient if blocking else ZooKeeperClient
    return kind(
        service,
        KernelThreads(context),
        TraceProbe(context),
        name=f"broker-{context.broker}",
        session_timeout_ms=context.config.zookeeper_session_timeout_ms,
        max_in_flight=context.config.zookeeper_max_in_flight_requests,
        callbacks_outside_lock=CALLBACKS_OUTSIDE_THE_LOCK in context.guards,
        reinitializes_alive=ONLY_A_DEAD_SESSION_IS_REPLACED not in context.guards,
    )


def client_version_of(profile: Profile) -> ClientVersion:
    """How this version uses ZooKeeper."""
    guards, blocking = profile.guards, profile.zookeeper_client == BLOCKING
    client_version = ClientVersion(
        checked_registration=BROKER_EPOCHS in guards,
        recreates_registration=STALE_REGISTRATION_REPLACED in guards,
        looks_before_creating=blocking,
        creates_leaf_first=blocking,
        recognises_own_writes=OWN_WRITE_RECOGNISED in guards,
        controller_recognises_own_writes=blocking and OWN_WRITE_RECOGNISED in guards,
        topic_version=profile.topic_version,
        lists_before_deleting=COMMAND_LISTED_BEFORE_DELETION in guards,
        scala=LIBRARIES[profile.scala],
        names_partitions_in_scala_maps=blocking,
        compares_ephemerals=OWN_EPHEMERAL_CHECKED not in guards,
        checks_ephemerals_itself=blocking and OWN_EPHEMERAL_CHECKED in guards,
    )
    own_paths = profile.top_level_paths
    return client_version._replace(top_level_paths=own_paths) if own_paths else client_version
