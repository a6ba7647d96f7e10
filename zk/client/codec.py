"""Kafka's znodes for partitions, topics and the controller: structs <-> bytes.

Written as by a Scala 2.13 build of 2.6 (field order, no white space). Reading accepts any order and
ignores unknown fields; malformed data raises `MalformedZNode` with path and field
(`ZkData.scala@2.6.3`). `zk.client.codec_admin` has brokers, admin commands and configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from zk import paths
from zk.client.codec_json import Int32, decode_json, decode_number, decode_number_text
from zk.errors import MalformedZNode
from zk.scala.java_hash import java_hash
from zk.scala.library import SCALA_2_13, ScalaLibrary
from zk.scala.murmur import scala_map_element_hash
from zk.scala.scala_order import isr_change_element_hash, table_order, topic_partition_hash

INT_MAX = 2**31 - 1


class TopicPartition(NamedTuple):
    """A partition of a topic; prints as Kafka prints it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LeaderAndIsr(msgspec.Struct, frozen=True):
    """LeaderAndIsr.scala@2.6.3. `isr` keeps its order; `zk_version` is the data version of the
    state znode."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int


class LeaderIsrAndControllerEpoch(msgspec.Struct, frozen=True):
    """LeaderIsrAndControllerEpoch.scala@2.6.3; `controller_epoch` is the epoch of the controller
    that decided."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int


class ReplicaAssignment(msgspec.Struct, frozen=True):
    """ControllerContext.scala@2.6.3 ReplicaAssignment. During a reassignment `replicas` has the
    target replicas, then the original ones. Up to 2.3 these are a Set: `target` has the order of
    the command."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    target: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def origin_replicas(self) -> tuple[int, ...]:
        """The replicas that are not being added."""
        return tuple(b for b in self.replicas if b not in self.adding_replicas)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that are not being removed."""
        return self.target or tuple(b for b in self.replicas if b not in self.removing_replicas)


class ControllerZNode(msgspec.Struct, frozen=True):
    """The controller's broker id, and the time of its election (wall-clock milliseconds)."""

    broker_id: int
    timestamp_ms: int


# Payloads, written in the order of their fields. `version` is written; Kafka does not check it when
# it reads.
class _State(msgspec.Struct, kw_only=True):
    controller_epoch: Int32
    leader: Int32
    version: object = 1
    leader_epoch: Int32
    isr: tuple[Int32, ...]


class _Controller(msgspec.Struct, kw_only=True):
    version: object = 1
    brokerid: Int32
    timestamp: str = "0"


class _Partition(msgspec.Struct):
    topic: str
    partition: Int32


class _Partitions(msgspec.Struct, kw_only=True):
    version: object = 1
    partitions: list[_Partition]


class _TopicV1(msgspec.Struct):
    version: int
    partitions: dict[str, tuple[Int32, ...]]


class _Topic(msgspec.Struct):
    version: object = 2
    partitions: dict[str, tuple[Int32, ...]] = {}
    adding_replicas: dict[str, tuple[Int32, ...]] = {}
    removing_replicas: dict[str, tuple[Int32, ...]] = {}


class _TopicV3(msgspec.Struct):
    partitions: dict[str, tuple[Int32, ...]]
    topic_id: str
    adding_replicas: dict[str, tuple[Int32, ...]]
    removing_replicas: dict[str, tuple[Int32, ...]]
    version: int = 3


class _TopicId(msgspec.Struct):
    topic_id: str = ""


_encode = msgspec.json.Encoder().encode
_state_decoder = msgspec.json.Decoder(_State)
_controller_decoder = msgspec.json.Decoder(_Controller)
_partitions_decoder = msgspec.json.Decoder(_Partitions)
_topic_decoder = msgspec.json.Decoder(_Topic)
_topic_id_decoder = msgspec.json.Decoder(_TopicId)


def encode_state(state: LeaderIsrAndControllerEpoch) -> bytes:
    """TopicPartitionStateZNode.encode: the zk_version is not in the payload."""
    it = state.leader_and_isr
    return _encode(
        _State(
            controller_epoch=state.controller_epoch,
            leader=it.leader,
            leader_epoch=it.leader_epoch,
            isr=it.isr,
        )
    )


def decode_state(path: str, data: bytes | None, zk_version: int) -> LeaderIsrAndControllerEpoch:
    """TopicPartitionStateZNode.decode; `zk_version` comes from the znode's Stat."""
    it = decode_json(path, data, _state_decoder)
    leader_and_isr = LeaderAndIsr(it.leader, it.leader_epoch, it.isr, zk_version)
    return LeaderIsrAndControllerEpoch(leader_and_isr, it.controller_epoch)


def encode_controller(controller: ControllerZNode) -> bytes:
    """ControllerZNode.encode."""
    return _encode(
        _Controller(brokerid=controller.broker_id, timestamp=str(controller.timestamp_ms))
    )


def decode_controller(data: bytes | None, path: str = paths.CONTROLLER) -> ControllerZNode:
    """ControllerZNode.decode reads only the broker id; the timestamp may be missing but not
    malformed."""
    it = decode_json(path, data, _controller_decoder)
    return ControllerZNode(it.brokerid, decode_number_text(path, "timestamp", it.timestamp))


def encode_controller_epoch(epoch: int) -> bytes:
    """ControllerEpochZNode.encode: decimal text."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None, path: str = paths.CONTROLLER_EPOCH) -> int:
    """ControllerEpochZNode.decode."""
    return decode_number(path, data, -(2**31), INT_MAX)


def isr_change_order(
    partitions: Iterable[TopicPartition],
    library: ScalaLibrary = SCALA_2_13,
    *,
    scala_maps: bool = False,
) -> list[TopicPartition]:
    """The order of the partitions in a notification: that of a set of maps, made from isrChangeSet,
    which is a mutable HashSet."""
    element_hash = scala_map_element_hash if scala_maps else isr_change_element_hash
    changed = library.set_order(partitions, lambda it: topic_partition_hash(*it))
    return library.mapped_order(changed, lambda it: element_hash(*it))


def encode_isr_change(
    partitions: Iterable[TopicPartition],
    library: ScalaLibrary = SCALA_2_13,
    *,
    scala_maps: bool = False,
) -> bytes:
    """IsrChangeNotificationSequenceZNode.encode, in the order of `isr_change_order`."""
    ordered = isr_change_order(partitions, library, scala_maps=scala_maps)
    return _encode(_Partitions(partitions=[_Partition(*it) for it in ordered]))


def decode_isr_change(path: str, data: bytes | None) -> tuple[TopicPartition, ...]:
    """IsrChangeNotificationSequenceZNode.decode: the partitions in the order of the JSON, without
    duplicates."""
    it = decode_json(path, data, _partitions_decoder)
    return tuple(dict.fromkeys(TopicPartition(p.topic, p.partition) for p in it.partitions))


def encode_preferred_election(partitions: Iterable[TopicPartition]) -> bytes:
    """PreferredReplicaElectionZNode.encode, in the order given."""
    return _encode(_Partitions(partitions=[_Partition(*it) for it in partitions]))


def decode_preferred_election(
    data: bytes | None, path: str = paths.PREFERRED_REPLICA_ELECTION
) -> tuple[TopicPartition, ...]:
    """PreferredReplicaElectionZNode.decode, without duplicates."""
    return decode_isr_change(path, data)


def encode_topic(
    assignment: Mapping[int, ReplicaAssignment], version: int = 2, topic_id: str = ""
) -> bytes:
    """TopicZNode.encode: version 2, with partitions in the order of Scala's mutable HashMap;
    version 3, if the topic has an id. Version 1 has the order of `assignment`, and does not say
    which replicas a reassignment adds or removes."""
    if version == 1:
        return _encode(_TopicV1(1, {str(p): it.replicas for p, it in assignment.items()}))
    keys = table_order([str(partition) for partition in assignment], java_hash)
    ordered = [(key, assignment[int(key)]) for key in keys]
    partitions = {key: it.replicas for key, it in ordered}
    adding = {key: it.adding_replicas for key, it in ordered if it.adding_replicas}
    removing = {key: it.removing_replicas for key, it in ordered if it.removing_replicas}
    if topic_id:
        return _encode(_TopicV3(partitions, topic_id, adding, removing))
    return _encode(_Topic(2, partitions, adding, removing))


def decode_topic(path: str, data: bytes | None) -> dict[int, ReplicaAssignment]:
    """TopicZNode.decode, versions 1-3: partitions in the order of the JSON; missing objects are
    empty."""
    it = decode_json(path, data, _topic_decoder)
    assignment: dict[int, ReplicaAssignment] = {}
    for key, replicas in it.partitions.items():
        if not key.isascii() or not key.isdecimal() or int(key) > INT_MAX:
            raise MalformedZNode(path, f"partitions.{key}", "no partition number")
        adding = it.adding_replicas.get(key, ())
        removing = it.removing_replicas.get(key, ())
        assignment[int(key)] = ReplicaAssignment(replicas, adding, removing)
    return assignment


def decode_topic_id(path: str, data: bytes | None) -> str:
    """The id that real Kafka 2.8 or later gave the topic; empty: it has none."""
    if not data or b'"topic_id"' not in data:
        return ""
    return decode_json(path, data, _topic_id_decoder).topic_id
