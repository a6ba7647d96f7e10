"""Hashes of Scala's case classes, tuples and maps: `scala.util.hashing.MurmurHash3`."""

from __future__ import annotations

from collections.abc import Iterable

from zk.scala.java_hash import java_hash

_MASK = 0xFFFFFFFF
_PRODUCT_SEED = 0xCAFEBABE


def product_hash(fields: Iterable[int]) -> int:
    """The hash of a tuple, or up to 2.12 of a case class, whose fields have these hashes."""
    return _product_hash(_PRODUCT_SEED, fields)


def named_product_hash(name: str, fields: Iterable[int]) -> int:
    """The hash of a case class since 2.13, which mixes in its name."""
    return _product_hash(_mix(_PRODUCT_SEED, java_hash(name)), fields)


def _product_hash(h: int, fields: Iterable[int]) -> int:
    count = 0
    for field in fields:
        h = _mix(h, field)
        count += 1
    return _avalanche(h ^ count)


def map_hash(entries: Iterable[tuple[int, int]]) -> int:
    """The hash of an immutable Map whose entries have these hashes, in any order."""
    total, exclusive, product, count = 0, 0, 1, 0
    for entry in entries:
        h = product_hash(entry)
        total = total + h & _MASK
        exclusive ^= h
        if h:
            product = product * h & _MASK
        count += 1
    h = _mix(_mix(java_hash("Map"), total), exclusive)
    return _avalanche(_mix_last(h, product) ^ count)


def topic_and_partition_hash(topic: str, partition: int) -> int:
    """TopicAndPartition.scala@1.0.2, a case class."""
    return product_hash((java_hash(topic), partition))


def partition_and_replica_hash(topic: str, partition: int, replica: int) -> int:
    """PartitionAndReplica of ReplicaStateMachine.scala@1.0.2, a case class of three fields."""
    return product_hash((java_hash(topic), partition, replica))


def scala_map_element_hash(topic: str, partition: int) -> int:
    """The hash of one element of an ISR change notification up to 1.0: Map("topic" -> …,
    "partition" -> …)."""
    return map_hash(((java_hash("topic"), java_hash(topic)), (java_hash("partition"), partition)))


def _mix(h: int, field: int) -> int:
    return _rotate(_mix_last(h, field), 13) * 5 + 0xE6546B64 & _MASK


def _mix_last(h: int, field: int) -> int:
    return h ^ _rotate(field * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _rotate(h: int, bits: int) -> int:
    return (h << bits | h >> (32 - bits)) & _MASK


def _avalanche(h: int) -> int:
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    return h ^ (h >> 16)
