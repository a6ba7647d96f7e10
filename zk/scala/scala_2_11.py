"""The iteration order of the hash tables of Scala 2.11 and 2.12.

Kafka up to 2.3 is recorded with Scala 2.11. Its tables place elements by the high bits of a mixed
hash; those of 2.13 (`scala_order`) use the low bits. Source: scala-library 2.11
`mutable/HashTable.scala`, `mutable/FlatHashTable.scala`, `immutable/HashSet.scala`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from zk.scala.scala_order import IMMUTABLE_SMALL, improve

T = TypeVar("T")

_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3775CD
_MAP_SEED = 4
"""A HashMap's seed is the number of bits of its first table, 16; it stays when the table grows."""


def hash_map_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of a mutable HashMap to which `items` were added one by one."""
    table: list[list[T]] = [[] for _ in range(16)]
    for count, item in enumerate(items, 1):
        # A new entry becomes the head of its chain.
        table[_bucket(hash_of(item), _MAP_SEED, len(table))].insert(0, item)
        if count > len(table) * 3 // 4:
            grown: list[list[T]] = [[] for _ in range(2 * len(table))]
            # From the last bucket to the first, each entry becomes the head of its new chain: this
            # reverses the order within a chain.
            for chain in reversed(table):
                for entry in chain:
                    grown[_bucket(hash_of(entry), _MAP_SEED, len(grown))].insert(0, entry)
            table = grown
    return [item for chain in reversed(table) for item in chain]


def hash_set_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of a mutable HashSet (a FlatHashTable) to which `items` were added one by
    one."""
    table: list[T | None] = [None] * 32
    for count, item in enumerate(items, 1):
        _put(table, item, hash_of)
        if count >= len(table) * 450 // 1000:
            grown: list[T | None] = [None] * (2 * len(table))
            for entry in table:
                if entry is not None:
                    _put(grown, entry, hash_of)
            table = grown
    return [item for item in table if item is not None]


def trie_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of an immutable HashMap or HashSet: by the mixed hash, five bits at a time,
    lowest bits first."""

    def position(item: T) -> list[int]:
        mixed = improve(hash_of(item))
        return [mixed >> shift & 31 for shift in range(0, 32, 5)]

    return sorted(items, key=position)


def immutable_order(items: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of an immutable Set or Map built by adding `items` one by one."""
    listed = list(items)
    return listed if len(listed) <= IMMUTABLE_SMALL else trie_order(listed, hash_of)


def grouped_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Iteration order of the Map that `groupBy` makes: an immutable one, from a mutable HashMap
    (TraversableLike.scala@2.11)."""
    return immutable_order(hash_map_order(keys, hash_of), hash_of)


def _put(table: list[T | None], item: T, hash_of: Callable[[T], int]) -> None:
    """Into the first free place from the hash's own on (linear probing)."""
    at = _bucket(hash_of(item), (len(table) - 1).bit_count(), len(table))
    while table[at] is not None:
        at = (at + 1) % len(table)
    table[at] = item


def _bucket(h: int, seed: int, buckets: int) -> int:
    """The highest bits of the hash after swapping bytes (`hashing.byteswap32`) and rotating by
    `seed`."""
    swapped = int.from_bytes((h * _GOLDEN & _MASK).to_bytes(4, "little"), "big")
    mixed = swapped * _GOLDEN & _MASK
    rotated = (mixed >> seed | mixed << (32 - seed)) & _MASK
    return rotated >> (32 - (buckets - 1).bit_count())
