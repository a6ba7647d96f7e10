"""How the ZooKeeper requests of Kafka releases differ.

Plain values that `kafka_zk_client` reads where Kafka changed its code. This module does not know
which release has which value. Sources: utils/ZkUtils.scala@0.8.2.2 to @1.0.2,
zk/KafkaZkClient.scala@1.1.1 to @2.6.3; spec §1.2, §2.7, §2.8, §2.12.
"""

from __future__ import annotations

from typing import NamedTuple

from zk import paths
from zk.scala.library import SCALA_2_13, ScalaLibrary


class ClientVersion(NamedTuple):
    """One release's way to use ZooKeeper.

    `checked_registration`: a broker registers with a multi, which returns the czxid (2.2).
    `recreates_registration`: a broker deletes and recreates its own stale registration (2.2).
    `looks_before_creating`: `exists` before a path is created and before the epoch is read (up to
    1.0). `checks_ephemerals_itself`: ZKCheckedEphemeral creates the parents first, and reads the
    owner past ZkClient, without a watch (0.9 to 1.0). `creates_leaf_first`: a new partition's state
    is created first, and its parents if that fails (up to 1.0).
    `recognises_own_writes`: after a rejected ISR write the leader reads the state and checks
    whether it is its own write (0.8.2). `controller_recognises_own_writes`: so does the controller
    with its writes of states (0.8.2 to 1.0). `topic_version`: version of a topic's JSON (1 up to
    2.3). `compares_ephemerals`: a broker recognises its own ephemeral by the data, not by the
    session (0.8). `lists_before_deleting`: getChildren before the command znode of reassignments is
    deleted (2.4). `scala`: the library that orders sets and maps. `names_partitions_in_scala_maps`:
    a notification's set contains Scala maps, whose hash differs from Java's (up to 1.0).
    """

    checked_registration: bool = True
    recreates_registration: bool = True
    looks_before_creating: bool = False
    checks_ephemerals_itself: bool = False
    creates_leaf_first: bool = False
    recognises_own_writes: bool = True
    controller_recognises_own_writes: bool = False
    topic_version: int = 2
    compares_ephemerals: bool = False
    lists_before_deleting: bool = True
    scala: ScalaLibrary = SCALA_2_13
    names_partitions_in_scala_maps: bool = False
    top_level_paths: tuple[str, ...] = paths.PERSISTENT_ZK_PATHS


LATEST = ClientVersion()
