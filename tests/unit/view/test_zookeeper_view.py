"""A running cluster as its znodes show it, what changed between two looks, and views compared."""

from __future__ import annotations

import msgspec

from emulator.view.live.top_model import BrokerLook, Look, cell, differs, headline, views
from emulator.view.live.zookeeper_view import Change, Seen, SeenState, changes, seen
from zk import paths
from zk.client.codec import (
    ControllerZNode,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    encode_controller,
    encode_isr_change,
    encode_state,
    encode_topic,
)
from zk.client.codec_admin import BrokerInfo, EndPoint, encode_broker
from zk.ops import Stat
from zk.real.mirror import ZNode

NOTIFICATION = "isr_change_0000000007"
STATE = paths.topic_partition_state("orders", 0)


def znode(data: bytes, version: int = 0) -> ZNode:
    return ZNode(data, Stat(5, 0, 0, 0, version, 0, 0, 0, len(data), 0, 0))


def state(isr: tuple[int, ...], version: int, leader: int = 1, epoch: int = 0) -> ZNode:
    it = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, epoch, isr, version), 3)
    return znode(encode_state(it), version)


class Znodes:
    """Three brokers and a topic; each change is one line."""

    def __init__(self) -> None:
        self.nodes = {
            paths.CONTROLLER: znode(encode_controller(ControllerZNode(3, 0))),
            paths.CONTROLLER_EPOCH: znode(b"3"),
            paths.topic("orders"): znode(encode_topic({0: ReplicaAssignment((1, 2, 3))})),
            STATE: state((1, 2, 3), 0),
        }
        self.children = {paths.BROKER_IDS: ("1", "2", "3"), paths.TOPICS: ("orders",)}
        for n in (1, 2, 3):
            info = BrokerInfo((EndPoint("PLAINTEXT", "PLAINTEXT", "h", 9090 + n),))
            self.nodes[paths.broker_id(n)] = znode(encode_broker(info))

    def seen(self) -> Seen:
        return seen(self.nodes, self.children)


def told(before: Seen, after: Seen) -> list[str]:
    return [f"{change.about}: {change.text}" for change in changes(before, after)]


def test_everything_is_new_at_the_first_look() -> None:
    assert told(Seen(), Znodes().seen()) == [
        "controller: broker 3, epoch 3",
        "broker 1: is registered, h:9091, epoch 5",
        "broker 2: is registered, h:9092, epoch 5",
        "broker 3: is registered, h:9093, epoch 5",
        "orders-0: replicas [1,2,3]; leader 1 (epoch 0) ISR [1,2,3] v0",
    ]


def test_each_change_is_told_once_in_words() -> None:
    znodes = Znodes()
    story = []
    before = znodes.seen()

    def now() -> None:
        nonlocal before
        after = znodes.seen()
        story.extend(told(before, after))
        assert told(after, after) == []
        before = after

    znodes.nodes[STATE] = state((1, 3), 1)
    now()
    change = encode_isr_change([TopicPartition("orders", 0)])
    znodes.children[paths.ISR_CHANGE_NOTIFICATION] = (NOTIFICATION,)
    znodes.nodes[f"{paths.ISR_CHANGE_NOTIFICATION}/{NOTIFICATION}"] = znode(change)
    now()
    znodes.children[paths.ISR_CHANGE_NOTIFICATION] = ()
    znodes.nodes[STATE] = state((1, 3, 2), 4)
    now()
    znodes.children[paths.BROKER_IDS] = ("2", "3")
    znodes.nodes[STATE] = state((3, 2), 5, leader=3, epoch=1)
    now()
    znodes.nodes[STATE] = state((3,), 6, leader=3, epoch=2)
    now()
    znodes.nodes[STATE] = state((3,), 7, leader=-1, epoch=3)
    now()
    del znodes.nodes[paths.CONTROLLER]
    znodes.nodes[STATE] = znode(b"rubbish", 8)
    now()
    assert story == [
        "orders-0: ISR shrinks [1,2,3] → [1,3] v0→v1",
        f"{NOTIFICATION}: pending: orders-0",
        "orders-0: ISR expands [1,3] → [1,3,2] v1→v4, 2 in between not seen",
        f"{NOTIFICATION}: deleted",
        "broker 1: is no longer registered",
        "orders-0: leader 1 → 3 (epoch 1), ISR shrinks [1,3,2] → [3,2] v4→v5",
        "orders-0: leader 3 (epoch 1 → 2), ISR shrinks [3,2] → [3] v5→v6",
        "orders-0: leader 3 → none (epoch 3) v6→v7",
        "controller: none, epoch 3",
        "orders-0: state missing",
        f"znode: {before.malformed[0]}",
    ]
    assert STATE in before.malformed[0]


def test_a_reassignment_shows_who_comes_and_who_goes() -> None:
    znodes = Znodes()
    before = znodes.seen()
    moving = ReplicaAssignment((4, 1, 2, 3), (4,), (3,))
    znodes.nodes[paths.topic("orders")] = znode(encode_topic({0: moving}))
    text = told(before, znodes.seen())
    assert text == ["orders-0: replicas [4,1,2,3]; being reassigned (+[4] -[3])"]
    znodes.children[paths.TOPICS] = ()
    assert told(before, znodes.seen()) == ["orders-0: deleted"]


def test_changes_carry_values_for_programs() -> None:
    znodes = Znodes()
    before = znodes.seen()
    znodes.nodes[STATE] = state((1, 3), 1)
    (change,) = changes(before, znodes.seen())
    assert isinstance(change, Change)
    assert change.facts["state"]["zk_version"] == 1
    msgspec.json.encode(change)


OWN = SeenState(1, 0, (1, 3), 1, 3)


def test_a_cell_says_what_is_different_and_nothing_else() -> None:
    assert cell(SeenState(1, 0, (3, 1)), OWN, known=True) == "="
    assert cell(SeenState(1, -1, (1, 3)), OWN, known=True) == "="
    assert cell(SeenState(1, 0, (1, 2, 3), 0), OWN, known=True) == "1 e0 [1,2,3] v0"
    assert cell(SeenState(1, 0, (1, 3), 0), OWN, known=True) == "1 e0 [1,3] v0"
    assert cell(None, OWN, known=True) == "none"
    assert cell(None, OWN, known=False) == "?"


def look() -> Look:
    """Broker 2 does not know of the shrink yet; broker 3 does not respond."""
    znodes = Znodes()
    znodes.nodes[STATE] = state((1, 3), 1)
    brokers = {
        1: BrokerLook({"orders-0": SeenState(1, 0, (1, 3))}, {"orders-0": OWN}),
        2: BrokerLook({"orders-0": SeenState(1, 0, (1, 2, 3))}),
        3: BrokerLook(problem="refused"),
    }
    return Look(znodes.seen(), brokers, True, 0.25, "h:2181")


def test_views_are_the_controllers_the_leaders_and_each_brokers() -> None:
    one = look().seen.partitions["orders-0"]
    assert [(whose, text) for whose, _, text in views(look(), one)] == [
        ("controller 3", "?"),
        ("leader 1", "="),
        ("metadata 1", "="),
        ("metadata 2", "1 e0 [1,2,3]"),
        ("metadata 3", "?"),
    ]
    assert differs(look(), one)


def test_the_headline_has_what_one_looks_for_first() -> None:
    text = headline(look())
    for words in ("controller 3, epoch 3", "1 under-replicated", "0 offline", "conflicts/s 0.2"):
        assert words in text
    assert "no controller, epoch ?" in headline(Look())
