"""The iteration order of Scala 2.13's hash tables, as pure functions.

Kafka iterates over sets and maps everywhere, so the order inside a batch of requests, a
notification's JSON or a shrink pass follows from hash codes. Two orders occur: *table* (mutable
HashMap and HashSet: buckets, each sorted by hash) and *trie* (immutable HashMap and HashSet above
four elements). All hashes are unsigned 32-bit numbers. Source: scala-library 2.13
`mutable/HashMap.scala`, `immutable/HashMap.scala`, `collection/Hashing.scala`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from zk.scala.java_hash import java_hash, signed, spread

T = TypeVar("T")

_MASK = 0xFFFFFFFF
IMMUTABLE_SMALL = 4
"""Immutable sets and maps up to this size keep insertion order."""


def table_order(items: Iterable[T], hash_of: Callable[[T], int], buckets: int = 16) -> list[T]:
    """Iteration order of a mutable HashMap or HashSet to which `items` were added one by one.

    The table doubles when an addition would fill it to three quarters; equal hashes keep their
    order. It starts with 16 buckets, or with 8 when made from a literal of up to five entries.
    """
    listed = list(items)
    while len(listed) >= buckets * 3 // 4:
        buckets *= 2
    mask = buckets - 1

    def position(item: T) -> tuple[int, int]:
        improved = spread(hash_of(item))
        return improved & mask, signed(improved)

    return sorted(listed, key=position)


def trie_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of an immutable HashMap or HashSet in trie form, for any number of items."""
    return _trie_level([(improve(hash_of(item)), item) for item in items], 0)


def immutable_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of an immutable Set or Map built by adding `items` one by one."""
    listed = list(items)
    return listed if len(listed) <= IMMUTABLE_SMALL else trie_order(listed, hash_of)


def _trie_level(hashed: list[tuple[int, T]], shift: int) -> list[T]:
    """One trie node: entries alone in their slot come first, in slot order, then the sub-nodes."""
    if shift > 30:
        return [item for _, item in hashed]
    slots: dict[int, list[tuple[int, T]]] = {}
    for entry in hashed:
        slots.setdefault(entry[0] >> shift & 31, []).append(entry)
    ordered = [slots[slot] for slot in sorted(slots)]
    own = [slot[0][1] for slot in ordered if len(slot) == 1]
    for slot in ordered:
        if len(slot) > 1:
            own += _trie_level(slot, shift + 5)
    return own


def improve(h: int) -> int:
    """Hashing.improve, the bit mixer of the immutable collections."""
    h = (h + ~(h << 9)) & _MASK
    h ^= h >> 14
    h = (h + (h << 4)) & _MASK
    return h ^ (h >> 10)


def topic_partition_hash(topic: str, partition: int) -> int:
    """TopicPartition.java@2.6.3 hashCode."""
    return (31 * (31 + partition) + java_hash(topic)) & _MASK


def isr_change_element_hash(topic: str, partition: int) -> int:
    """Hash of one element of an ISR change notification: a Java map {topic, partition}."""
    return ((java_hash("topic") ^ java_hash(topic)) + (java_hash("partition") ^ partition)) & _MASK
