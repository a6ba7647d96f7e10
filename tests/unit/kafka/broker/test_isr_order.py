"""A leader's ISR is listed in the order of Scala's immutable Set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kafka.broker.isr_order import IsrOrder
from emulator.kafka.profiles.base import profiles
from emulator.trace.values import TopicPartition

AUDIT = TopicPartition("audit", 0)
BROKERS = st.lists(st.integers(0, 9), unique=True, max_size=4)
VERSIONS = sorted(profiles())


@pytest.mark.parametrize("version", VERSIONS)
@given(brokers=BROKERS)
def test_up_to_four_stand_in_the_order_in_which_they_came(version: str, brokers: list[int]) -> None:
    order = IsrOrder(profiles()[version], AUDIT)
    assert order.set_of(brokers) == (tuple(brokers), False)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_isr_of_five_stays_a_trie_when_it_shrinks_and_grows(version: str) -> None:
    """kafka-2.6.3/five-brokers: audit-0 loses broker 3 and has it back."""
    order = IsrOrder(profiles()[version], AUDIT)
    five, is_trie = order.set_of((1, 2, 3, 4, 5))
    assert (five, is_trie) == ((5, 1, 2, 3, 4), True)
    without_3, is_trie = order.set_of((5, 1, 2, 4), is_trie=True)
    assert is_trie
    if profiles()[version].isr_members == "ids":
        assert without_3 == (5, 1, 2, 4)
    assert order.set_of((*without_3, 3), is_trie=True) == ((5, 1, 2, 3, 4), True)


def test_a_trie_of_four_does_not_append() -> None:
    order = IsrOrder(profiles()["2.6"], AUDIT)
    assert order.set_of((1, 2, 4, 5), is_trie=True) == ((5, 1, 2, 4), True)


def test_a_trie_of_replica_objects_has_their_order_once_it_has_four() -> None:
    """Made with scala-library 2.11.12: an immutable Set of 31 + hash of audit-0 + 17 * id."""
    by_version = {v: IsrOrder(profiles()[v], AUDIT) for v in ("0.9.0", "1.1", "2.6")}
    orders = {v: order.set_of((1, 2, 4, 5), is_trie=True)[0] for v, order in by_version.items()}
    assert orders == {"0.9.0": (4, 5, 1, 2), "1.1": (1, 5, 4, 2), "2.6": (5, 1, 2, 4)}
