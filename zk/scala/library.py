"""The iteration orders of one line of Scala's library, as one value.

A Kafka profile says which library its release is recorded with. Nothing here depends on the
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from zk.scala import scala_2_11, scala_order
from zk.scala.murmur import named_product_hash, product_hash
from zk.scala.scala_order import IMMUTABLE_SMALL

T = TypeVar("T")


class Order(Protocol):
    """The iteration order of a collection to which the items are added one by one."""

    def __call__(self, items: Iterable[T], hash_of: Callable[[T], int], /) -> list[T]: ...


class ScalaLibrary(NamedTuple):
    """`map_order` and `set_order` belong to the mutable HashMap and HashSet, `trie_order` to the
    immutable ones above four elements. `mapped_order`: the order after `map` over a mutable set
    typed as collection.Set; up to 2.11 the result is an immutable set. `grouped_order`: the order
    of the keys after `groupBy`. `case_class_hash`: from the class's name and its fields' hashes.
    """

    version: str
    map_order: Order
    set_order: Order
    trie_order: Order
    mapped_order: Order
    grouped_order: Order
    case_class_hash: Callable[[str, Iterable[int]], int]


def immutable_set(
    members: Iterable[T],
    library: ScalaLibrary,
    hash_of: Callable[[T], int],
    *,
    is_trie: bool = False,
) -> tuple[tuple[T, ...], bool]:
    """The members of an immutable Set in its order, and whether it is a hash trie. Up to four keep
    their order; the fifth turns the set into a trie. `members` are the previous set's members
    without the removed ones, followed by the added ones. `is_trie`: the previous set was a trie; it
    stays one.
    """
    listed = tuple(members)
    if not is_trie and len(listed) <= IMMUTABLE_SMALL:
        return listed, False
    return tuple(library.trie_order(listed, hash_of)), True


SCALA_2_11 = ScalaLibrary(
    "2.11",
    scala_2_11.hash_map_order,
    scala_2_11.hash_set_order,
    scala_2_11.trie_order,
    scala_2_11.immutable_order,
    scala_2_11.grouped_order,
    lambda _, fields: product_hash(fields),
)
SCALA_2_13 = ScalaLibrary(
    "2.13",
    scala_order.table_order,
    scala_order.table_order,
    scala_order.trie_order,
    scala_order.table_order,
    scala_order.trie_order,
    named_product_hash,
)
LIBRARIES = {library.version: library for library in (SCALA_2_11, SCALA_2_13)}
