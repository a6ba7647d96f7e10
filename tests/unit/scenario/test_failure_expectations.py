"""Expectations of crashes and fail-overs: a trace that satisfies each, and one that does not."""

from __future__ import annotations

import json

import pytest

from emulator.trace import events as e
from emulator.trace.values import LoggedOp
from tests.unit.scenario.story import ORDERS, Story, judged, observe

STATE = "/brokers/topics/orders/partitions/0/state"


def elected(story: Story, version: int, leader: int, epoch: int, *isr: int) -> Story:
    """The controller writes another leader; ZooKeeper logs it as a fenced multi."""
    data = json.dumps({"leader": leader, "leader_epoch": epoch, "isr": isr})
    ops = (
        LoggedOp("check", "/controller_epoch", None, 2),
        LoggedOp("setData", STATE, data, version),
    )
    return story.tell(e.ZkTransaction, 3, 100 + version, "multi", None, None, None, False, ops)


def crash() -> Story:
    """Broker 1 leads and dies at 5 s; 2 leads from 11 s on."""
    story = Story().created().at(4.9).appended(1, 0, 9).produced(0, 5)
    return elected(story.at(11), 1, 2, 1, 2, 3).at(11.4).produced(5, 4)


def unclean() -> Story:
    story = Story().created().at(5).written(1, 1)
    elected(story.at(9), 2, -1, 1, 1)
    return elected(story.at(12), 3, 2, 2, 2)


def topics(*sizes: int) -> Story:
    """A topic's znode: created, extended, deleted."""
    story = Story().created()
    path, before = "/brokers/topics/orders", 0
    for second, size in enumerate(sizes, start=4):
        data = json.dumps({"partitions": {str(n): [n + 1, 3] for n in range(size)}})
        op = "delete" if not size else "setData" if before else "create"
        story.at(second).tell(e.ZkTransaction, 3, 200 + second, op, path, data if size else None)
        before = size
    return story


def test_leaders_in_order() -> None:
    assert judged("leader of orders-0 goes 1 -> 2", crash()).held is True
    assert judged("leader of orders-0 goes 1", crash()).held is False
    assert judged("leader of orders-0 goes 1 -> none -> 2", crash()).held is False
    assert judged("leader of orders-0 goes 1 -> none -> 2", unclean()).held is True
    assert judged("leader of bills-0 goes 1 -> 2", crash()).held is None


def test_a_leader_in_time() -> None:
    text = "leader of orders-0 becomes 2 between 10s and 12s"
    assert judged(text, crash()).held is True
    assert judged(text.replace("12s", "10.5s"), crash()).held is False
    assert judged(text, Story().created()).held is False
    assert judged("leader of orders-0 becomes none between 8s and 10s", unclean()).held is True


def test_an_isr_that_changes_late() -> None:
    text = "isr of orders-0 first changes between 10s and 12s"
    assert judged(text, crash()).held is True
    assert judged(text, Story().created().at(9).written(1, 1, 3).at(11).written(2, 1)).held is False
    assert judged(text, Story().created()).held is False


def test_elections_are_counted_and_unclean_ones_told_apart() -> None:
    assert judged("leader elections: 1", crash()).held is True
    assert judged("unclean elections: 0", crash()).held is None
    assert judged("leader elections: 1", unclean()).held is True
    assert judged("unclean elections: 1", unclean()).held is True


def test_how_long_producers_wait() -> None:
    assert judged("no record of orders is acknowledged for at least 6s", crash()).held is True
    assert judged("no record of orders is acknowledged for at least 7s", crash()).held is False
    assert judged("no record of orders is acknowledged for at most 7s", crash()).held is True
    assert judged("no record of orders is acknowledged for at most 6s", crash()).held is False
    calm = Story().created().at(2).produced(0, 1).at(3).produced(1, 1)
    assert judged("no record of orders is acknowledged for at most 6s", calm).held is None
    assert judged("no record of orders is acknowledged for at least 1s", Story()).held is None


def failover() -> Story:
    story = Story().created().tell(e.ControllerElected, 3, 1, 1)
    return story.at(15).tell(e.ControllerElected, 1, 2, 2)


def test_the_controller_moves() -> None:
    assert judged("controller moves from 3", failover()).held is True
    assert judged("controller moves from 3 between 14s and 16s", failover()).held is True
    assert judged("controller moves from 3 between 16s and 18s", failover()).held is False
    assert judged("controller moves from 1", failover()).held is False
    again = Story().tell(e.ControllerElected, 3, 1, 1).tell(e.ControllerElected, 3, 2, 2)
    assert judged("controller moves from 3", again).held is False


def test_a_zombie_resigns_late() -> None:
    text = "3 resigns at least 2s after another was elected"
    assert judged(text, failover().at(17.5).tell(e.ControllerResigned, 3, 1)).held is True
    assert judged(text, failover().at(16.5).tell(e.ControllerResigned, 3, 1)).held is False
    assert judged(text, failover()).held is False
    assert judged(text, Story().at(5).tell(e.ControllerResigned, 3, 1)).held is False


def test_requests_that_brokers_refuse() -> None:
    refused = ("LeaderAndIsr", 3, 1, "STALE_CONTROLLER_EPOCH")
    story = failover().tell(e.ControlRequestRefused, 1, *refused)
    text = "control requests of 3 refused: 1 (STALE_CONTROLLER_EPOCH)"
    assert judged(text, story).held is True
    assert judged(text.replace("3", "2"), story).held is False
    assert judged(text.replace("CONTROLLER", "BROKER"), story).held is False
    assert judged("control requests of 3 refused: at least 1", story).held is True
    assert judged("control requests of 2 refused: at most 1", story).held is None


def test_what_the_controller_finds_of_a_broker() -> None:
    once = Story().tell(e.ProcessStateChanged, 1, "starting")
    twice = once.at(9).tell(e.ProcessStateChanged, 1, "starting")
    bounced = twice.at(11).tell(e.BrokerChange, 3, (), (), (1,), (1, 2, 3))
    assert judged("controller finds 1 bounced", bounced).held is True
    assert judged("controller finds 1 new", bounced).held is False
    assert judged("controller finds 2 bounced", bounced).held is False
    assert judged("controller never finds 1 dead", bounced).held is True
    died = bounced.tell(e.BrokerChange, 3, (), (1,), (), (2, 3))
    assert judged("controller never finds 1 dead", died).held is False
    first = Story().tell(e.ProcessStateChanged, 1, "starting")
    first.tell(e.BrokerChange, 3, (1,), (), (), (1,))
    assert judged("controller finds 1 new", first).held is False
    assert judged("controller never finds 1 dead", first).held is None


def test_topics_come_grow_and_go() -> None:
    story = topics(1, 3, 0, 2)
    assert judged("topic orders goes 1 -> 3 -> gone -> 2 partitions", story).held is True
    assert judged("topic orders goes 1 -> 3 -> gone partitions", story).held is False
    assert judged("topic orders is gone between 5s and 7s", story).held is True
    assert judged("topic orders is gone between 7s and 9s", story).held is False
    assert judged("topic orders is gone between 5s and 7s", topics(1)).held is False
    assert judged("topic bills goes 1 partitions", story).held is None


def test_replicas_that_move() -> None:
    story = topics(1)
    data = json.dumps({"partitions": {"0": [2, 3]}})
    moved = story.at(7).tell(e.ZkTransaction, 3, 300, "setData", "/brokers/topics/orders", data)
    assert judged("replicas of orders-0 go [1, 3] -> [2, 3]", moved).held is True
    assert judged("replicas of orders-0 go [1, 3]", moved).held is False
    assert judged("replicas of orders-1 go [1, 3]", moved).held is None


@pytest.mark.parametrize(("event", "unread"), [("Reelect", 2), ("IsrChangeNotification", 0)])
def test_notifications_that_a_new_controller_deletes_go_unread(event: str, unread: int) -> None:
    gone = ("/isr_change_notification/isr_change_1", "/isr_change_notification/isr_change_2")
    story = crash().tell(e.IsrChangeCleared, 3, gone)
    story.tell(e.ControllerEventProcessed, 3, event, 0, 0)
    assert observe(story).counts.notifications_unread == unread
    assert judged("notifications deleted unread: 2", story).held is (unread == 2)


def test_a_session_that_ran_out_is_told_from_one_that_was_closed() -> None:
    story = Story().created().tell(e.ZkTransaction, 2, 7, "closeSession")
    assert judged("sessions expired: 1", story).held is True
    asked = Story().created().tell(e.ZkRequest, 2, "closeSession")
    cause = asked.events[-1].seq
    asked.events.append(e.ZkTransaction(len(asked.events), 0, 2, "t", cause, 7, "closeSession"))
    assert judged("sessions expired: 1", asked).held is False


def test_records_that_were_cut_off_and_those_that_were_lost() -> None:
    story = crash().tell(e.LogTruncated, 1, ORDERS, 9, 6)
    assert judged("records truncated: 3", story).held is True
    assert judged("records lost: at least 1", story).held is True
    assert judged("records lost: at least 1", Story().created()).held is False
