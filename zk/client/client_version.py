"""How releases of Kafka differ in what they ask of ZooKeeper.

Plain values that `kafka_zk_client` reads where Kafka's own change was made; which release has which
is not known here. Sources: utils/ZkUtils.scala@0.8.2.2 to @1.0.2, zk/KafkaZkClient.scala@1.1.1 to
@2.6.3; spec §1.2, §2.7, §2.8, §2.12.
"""

from __future__ import annotations

from typing import NamedTuple

from zk import paths
from zk.scala.library import SCALA_2_13, ScalaLibrary


class ClientVersion(NamedTuple):
    """`checked_registration`: the registration in a multi that answers with its czxid (2.2).
    `recreates_registration`: a stale one of its own is deleted and made again (2.2).
    `looks_before_creating`: `exists` before a path is made, and before the epoch is read (<= 1.0).
    `creates_parents_first`: of an ephemeral (0.9 to 1.0). `creates_leaf_first`: of a new
    partition's state, its parents where that fails (<= 1.0). `recognises_own_writes`: an ISR write
    that is refused reads back whether it is there already (0.8.2). `topic_version`: of a topic's
    JSON (1 up to 2.3). `compares_ephemerals`: whose an ephemeral is, is known by what it says, not
    by its session (0.8). `lists_before_deleting`: the children of the command znode of
    reassignments (2.4). `scala`: whose library orders sets and maps.
    `names_partitions_in_scala_maps`: a notification's set holds Scala's maps, whose hash is not
    Java's (<= 1.0)."""

    checked_registration: bool = True
    recreates_registration: bool = True
    looks_before_creating: bool = False
    creates_parents_first: bool = False
    creates_leaf_first: bool = False
    recognises_own_writes: bool = True
    topic_version: int = 2
    compares_ephemerals: bool = False
    lists_before_deleting: bool = True
    scala: ScalaLibrary = SCALA_2_13
    names_partitions_in_scala_maps: bool = False
    top_level_paths: tuple[str, ...] = paths.PERSISTENT_ZK_PATHS


LATEST = ClientVersion()
