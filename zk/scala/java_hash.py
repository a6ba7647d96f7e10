"""Java's `String.hashCode` and the iteration order of `java.util.HashSet`.

The real server keeps children and ephemerals in HashSets. The order of a getChildren response, and
the order in which a closed session's ephemerals are removed, follow from that (`DataNode.java`,
`DataTree.java` 3.5.9). Brokers of 0.10 keep the replicas of a control request in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def java_hash(text: str) -> int:
    """String.hashCode as an unsigned 32-bit number (over UTF-16 units, as in Java)."""
    h = 0
    if text.isascii():
        for unit in text.encode():
            h = (h * 31 + unit) & 0xFFFFFFFF
        return h
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = (h * 31 + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return h


def list_hash(elements: Iterable[int]) -> int:
    """List.hashCode of elements with these hashes."""
    h = 1
    for element in elements:
        h = (31 * h + element) & 0xFFFFFFFF
    return h


def spread(h: int) -> int:
    """HashMap.hash: folds the high bits into the low ones."""
    return h ^ (h >> 16)


def signed(h: int) -> int:
    """A 32-bit pattern as Java's int."""
    return h - 0x100000000 if h & 0x80000000 else h


def hash_set_order(names: Iterable[str], capacity: int = 16) -> list[str]:
    """The order in which a HashSet of `capacity` buckets lists `names`, given in insertion
    order."""
    return in_buckets(list(names), java_hash, capacity)


def id_set_order(ids: Sequence[int]) -> list[int]:
    """The order in which a HashSet of Integers, created for that many, lists them."""
    return in_buckets(ids, lambda number: number, 1 << max(len(ids) - 1, 0).bit_length())


def in_buckets(items: Sequence[T], hash_of: Callable[[T], int], capacity: int = 16) -> list[T]:
    """The order of keys with these hashes in a HashMap that began with `capacity` buckets."""
    while len(items) > capacity * 3 // 4:
        capacity *= 2
    mask = capacity - 1
    return sorted(items, key=lambda item: spread(hash_of(item)) & mask)


def hash_set_clone_order(names: Iterable[str]) -> list[str]:
    """The order of a clone of that HashSet: `HashSet.clone` sizes its table for the elements."""
    listed = hash_set_order(names)
    least = int(len(listed) / 0.75 + 1)
    capacity = 1
    while capacity < least:
        capacity *= 2
    return hash_set_order(listed, capacity)
