"""Consumers that read from the replica in their rack (KIP-392): whom the leader prefers, how long
its answer takes, and what a follower serves."""

from __future__ import annotations

import pytest

from emulator.kafka.broker.assignment import assign_replicas_to_brokers, rack_alternated
from emulator.kafka.broker.replica_selector import ReplicaView, select
from emulator.kafka.model.config import RACK_AWARE_SELECTOR
from emulator.kafka.model.errors import KafkaError
from tests.interaction.hosting import (
    LIVE,
    ORDERS_0,
    Hosting,
    fetch,
    leading,
    update_metadata,
)
from tests.interaction.playbook import Incoming, after_ms
from tests.interaction.test_following import answered, fetched, following

IN_RACKS = tuple(
    broker._replace(rack=rack) for broker, rack in zip(LIVE, ("east", "west", "west"), strict=True)
)
SELECTS = {"replica_selector_class": RACK_AWARE_SELECTOR}


def in_east(**settings: object) -> Hosting:
    """Broker 1 leads orders-0 in the east; its followers 2 and 3 are in the west, caught up at
    10."""
    play = leading(**{**SELECTS, **settings})
    play >> update_metadata(live=IN_RACKS)
    play.forget()
    return play


def consume(at: int, rack: str | None = "west", *, wait_ms: int = 500) -> Incoming:
    return fetch(-1, at, rack=rack, max_wait_ms=wait_ms, name="consumer")


# -- whom the leader prefers -----------------------------------------------------------------------


def test_the_leader_sends_a_consumer_to_the_follower_in_its_rack_that_is_furthest() -> None:
    play = in_east()
    play.follower(2, 7)
    play >> consume(5, wait_ms=0)
    play << "consumer: read from 3, hw 10"


def test_of_two_that_are_equally_far_the_one_that_caught_up_last() -> None:
    play = in_east()
    play.follower(3, 10, caught_up_ms_ago=200)
    play >> consume(5, wait_ms=0)
    play << "consumer: read from 2, hw 10"


def test_a_follower_that_lacks_the_requested_offset_is_not_preferred() -> None:
    play = in_east()
    play.follower(2, 7)
    play.follower(3, 6)
    play >> consume(8, wait_ms=0)
    play << "consumer: 8..10, hw 10"


def test_a_consumer_with_an_outdated_epoch_is_fenced() -> None:
    play = in_east()
    play >> fetch(-1, 5, epoch=3, rack="west", name="consumer")
    play << "consumer: FENCED_LEADER_EPOCH"


def test_followers_are_never_sent_elsewhere() -> None:
    play = in_east()
    play >> fetch(2, 10, rack="west", max_wait_ms=0)
    play << "fetch-2: nothing, hw 10"


# -- what a follower serves ------------------------------------------------------------------------


def follower(records: int, hw: int, **settings: object) -> Hosting:
    """Broker 1 follows broker 2; it has these records, and this high watermark."""
    play = following(**settings)
    play >> answered(fetched(ORDERS_0, *range(records), hw=hw))
    play.forget()
    return play


def test_a_follower_serves_consumers_up_to_its_own_high_watermark() -> None:
    play = follower(5, 3)
    play >> consume(0, wait_ms=0)
    play << "consumer: 0..3, hw 3"
    play >> consume(4, wait_ms=0)
    play << "consumer: nothing, hw 3"
    play >> consume(6, wait_ms=0)
    play << "consumer: OFFSET_OUT_OF_RANGE"


def test_an_old_consumer_and_one_before_2_4_are_told_that_it_does_not_lead() -> None:
    play = follower(5, 3)
    play >> consume(0, None)
    play << "consumer: NOT_LEADER_OR_FOLLOWER"
    play = follower(5, 3, guards={"fetch-from-followers": False})
    play >> consume(0)
    play << "consumer: NOT_LEADER_OR_FOLLOWER"


def test_a_consumer_ahead_of_the_high_watermark_waits_for_it() -> None:
    play = follower(5, 3, profile="3.3")
    play >> consume(4)
    play >> after_ms(500)
    play << "consumer: nothing, hw 3"


# -- the selector, and replicas over racks ---------------------------------------------------------


def test_the_greatest_id_decides_last() -> None:
    leader = ReplicaView(1, "east", 9, 0)
    others = [ReplicaView(3, "west", 9, 5), ReplicaView(2, "west", 9, 5)]
    assert select("west", [leader, *others], leader).broker == 3


RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_brokers_of_different_racks_alternate() -> None:
    """AdminRackAwareTest.testGetRackAlternatedBrokerListAndAssignReplicasToBrokers"""
    assert rack_alternated(range(6), RACKS) == [0, 3, 1, 5, 4, 2]
    assert rack_alternated(range(5), RACKS) == [0, 3, 1, 4, 2]
    assert assign_replicas_to_brokers(range(6), 7, 3, 0, 0, racks=RACKS) == (
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    )


def test_a_broker_without_a_rack_among_others_is_an_error() -> None:
    with pytest.raises(KafkaError, match="Not all brokers have rack information"):
        assign_replicas_to_brokers((1, 2), 1, 1, 0, 0, racks={1: "east"})
