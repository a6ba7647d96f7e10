"""Payloads of partitions, topics and the controller: written by real Kafka, and arbitrary ones."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zk.client import codec
from zk.client.codec import (
    ControllerZNode,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
)
from zk.errors import MalformedZNode
from zk.scala.scala_order import isr_change_element_hash

int32 = st.integers(-(2**31), 2**31 - 1)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(tuple)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
topic_partitions = st.builds(TopicPartition, names, st.integers(0, 10_000))
states = st.builds(
    LeaderIsrAndControllerEpoch,
    st.builds(LeaderAndIsr, int32, int32, ids, st.integers(0, 1000)),
    int32,
)
assignments = st.dictionaries(
    st.integers(0, 2**31 - 1), st.builds(ReplicaAssignment, ids, ids, ids), max_size=20
)

STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
TOPIC_V1 = b'{"version":1,"partitions":{"0":[1,2,3],"1":[2,3,1]}}'
TOPIC_V2 = (
    b'{"version":2,"partitions":{"0":[4,5,1,2],"1":[2,3,1]},'
    b'"adding_replicas":{"0":[4,5]},"removing_replicas":{"0":[1,2]}}'
)
TOPIC_V3 = (
    b'{"partitions":{"0":[1,2,3]},"topic_id":"McZM_uPoQZmvSqcFAbCdEQ",'
    b'"adding_replicas":{},"removing_replicas":{},"version":3}'
)


def shuffled(data: bytes) -> bytes:
    """The same object with its fields backwards, white space, and one field more."""
    fields = list(json.loads(data).items())
    return json.dumps(dict([("unknown", {"x": [None]}), *reversed(fields)]), indent=1).encode()


def test_a_state_is_written_as_kafka_writes_it() -> None:
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(1, 0, (1, 2, 3), zk_version=7), 1)
    assert codec.encode_state(state) == STATE
    assert codec.decode_state("/s", STATE, 7) == state
    assert codec.decode_state("/s", shuffled(STATE), 7) == state


@given(states)
def test_a_state_comes_back(state: LeaderIsrAndControllerEpoch) -> None:
    version = state.leader_and_isr.zk_version
    assert codec.decode_state("/s", codec.encode_state(state), version) == state


def test_the_order_of_an_isr_is_kept() -> None:
    one = codec.decode_state("/s", STATE.replace(b"[1,2,3]", b"[3,1,2]"), 0)
    assert one.leader_and_isr.isr == (3, 1, 2)


def test_a_controller() -> None:
    data = b'{"version":1,"brokerid":2,"timestamp":"1600000000000"}'
    controller = ControllerZNode(2, 1_600_000_000_000)
    assert codec.encode_controller(controller) == data
    assert codec.decode_controller(shuffled(data)) == controller
    v2 = b'{"version":2,"brokerid":2,"timestamp":"1700000000000","kraftControllerEpoch":-1}'
    assert codec.decode_controller(v2).broker_id == 2
    assert codec.decode_controller(b'{"brokerid":5}') == ControllerZNode(5, 0)


def test_a_controller_epoch_is_decimal_text() -> None:
    assert codec.encode_controller_epoch(7) == b"7"
    assert codec.decode_controller_epoch(b"7") == 7


@given(st.lists(topic_partitions, max_size=40, unique=True))
def test_a_notification_comes_back_whatever_the_order_of_its_partitions(
    partitions: list[TopicPartition],
) -> None:
    data = codec.encode_isr_change(partitions)
    assert set(codec.decode_isr_change("/n", data)) == set(partitions)
    assert codec.encode_isr_change(reversed(partitions)) == data or len(
        {isr_change_element_hash(*it) for it in partitions}
    ) < len(partitions)


def test_a_notification_is_written_as_kafka_writes_it() -> None:
    partitions = (TopicPartition("clicks", 0), TopicPartition("orders", 0))
    data = (
        b'{"version":1,"partitions":[{"topic":"clicks","partition":0},'
        b'{"topic":"orders","partition":0}]}'
    )
    assert codec.encode_isr_change(partitions) == data
    assert codec.decode_isr_change("/n", shuffled(data)) == partitions
    assert str(partitions[1]) == "orders-0"


def test_a_preferred_election_keeps_its_order() -> None:
    partitions = (TopicPartition("t", 1), TopicPartition("t", 0))
    data = codec.encode_preferred_election(partitions)
    assert data == (
        b'{"version":1,"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":0}]}'
    )
    assert codec.decode_preferred_election(data) == partitions


def test_topics_of_all_versions_are_read() -> None:
    plain = {0: ReplicaAssignment((1, 2, 3)), 1: ReplicaAssignment((2, 3, 1))}
    assert codec.decode_topic("/t", TOPIC_V1) == plain
    moving = {0: ReplicaAssignment((4, 5, 1, 2), (4, 5), (1, 2)), 1: ReplicaAssignment((2, 3, 1))}
    assert codec.decode_topic("/t", TOPIC_V2) == moving
    assert codec.decode_topic("/t", shuffled(TOPIC_V2)) == moving
    assert codec.decode_topic("/t", TOPIC_V3) == {0: ReplicaAssignment((1, 2, 3))}
    assert codec.decode_topic("/t", b'{"version":2}') == {}


def test_a_topic_id_is_read_and_written_back() -> None:
    assert codec.decode_topic_id("/t", TOPIC_V3) == "McZM_uPoQZmvSqcFAbCdEQ"
    assert codec.decode_topic_id("/t", TOPIC_V2) == ""
    written = codec.encode_topic(
        {0: ReplicaAssignment((1, 2, 3))}, topic_id="McZM_uPoQZmvSqcFAbCdEQ"
    )
    assert written == TOPIC_V3


def test_topics_are_written_in_version_2_in_the_order_of_scala_s_table() -> None:
    moving = codec.decode_topic("/t", TOPIC_V2)
    assert codec.encode_topic(moving) == TOPIC_V2
    twelve = codec.encode_topic({p: ReplicaAssignment((1,)) for p in range(12)})
    keys = ["11", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
    assert list(json.loads(twelve)["partitions"]) == keys


def test_version_1_has_the_given_order_and_does_not_say_what_moves() -> None:
    assert codec.encode_topic(codec.decode_topic("/t", TOPIC_V1), 1) == TOPIC_V1
    moving = {1: ReplicaAssignment((4, 1, 2), (4,), (1, 2)), 0: ReplicaAssignment((2, 3))}
    assert codec.encode_topic(moving, 1) == b'{"version":1,"partitions":{"1":[4,1,2],"0":[2,3]}}'


@given(assignments)
def test_a_topic_comes_back(assignment: dict[int, ReplicaAssignment]) -> None:
    assert codec.decode_topic("/t", codec.encode_topic(assignment)) == assignment


MALFORMED_STATES = [
    (None, "", "no data"),
    (b"", "", "empty"),
    (b"{", "", "invalid JSON"),
    (b"\xff\xfe", "", "invalid JSON"),
    (b"[]", "", "Expected `object`, got `array`"),
    (STATE + b"x", "", "invalid JSON"),
    (STATE.replace(b'"leader":1', b'"leader":"1"'), "leader", "Expected `int`, got `str`"),
    (STATE.replace(b'"leader":1', b'"leader":1.0'), "leader", "Expected `int`, got `float`"),
    (STATE.replace(b'"leader":1', b'"leader":true'), "leader", "Expected `int`, got `bool`"),
    (STATE.replace(b'"leader":1', b'"leader":null'), "leader", "Expected `int`, got `null`"),
    (STATE.replace(b'"leader":1', b'"leader":2147483648'), "leader", "<= 2147483647"),
    (STATE.replace(b'"leader_epoch":0,', b""), "leader_epoch", "missing"),
    (STATE.replace(b"[1,2,3]", b"{}"), "isr", "Expected `array`, got `object`"),
    (STATE.replace(b"[1,2,3]", b'[1,"2"]'), "isr[1]", "Expected `int`, got `str`"),
]


@pytest.mark.parametrize(("data", "field", "problem"), MALFORMED_STATES)
def test_a_malformed_state_is_named(data: bytes | None, field: str, problem: str) -> None:
    with pytest.raises(MalformedZNode) as raised:
        codec.decode_state("/brokers/topics/t/partitions/0/state", data, 0)
    assert raised.value.path == "/brokers/topics/t/partitions/0/state"
    assert raised.value.field == field
    assert problem in raised.value.problem
    assert str(raised.value).startswith("/brokers/topics/t/partitions/0/state: ")


def malformed(data: bytes, decode: object) -> str:
    assert callable(decode)
    with pytest.raises(MalformedZNode) as raised:
        decode(data)
    return str(raised.value)


def test_other_malformed_payloads_are_named_too() -> None:
    assert malformed(b"seven", codec.decode_controller_epoch).startswith("/controller_epoch: no ")
    assert "out of range" in malformed(b"2147483648", codec.decode_controller_epoch)
    assert malformed(b'{"brokerid":1,"timestamp":"now"}', codec.decode_controller) == (
        "/controller: timestamp: no number: 'now'"
    )
    assert malformed(
        b'{"partitions":[{"topic":"t"}]}', lambda data: codec.decode_isr_change("/n", data)
    ) == ("/n: partitions[0].partition: missing")
    assert malformed(b'{"partitions":{"x":[1]}}', lambda data: codec.decode_topic("/t", data)) == (
        "/t: partitions.x: no partition number"
    )
    assert malformed(
        b'{"partitions":{"0":[null]}}', lambda data: codec.decode_topic("/t", data)
    ).startswith("/t: partitions")


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    decoders = [
        codec.decode_controller,
        codec.decode_controller_epoch,
        codec.decode_preferred_election,
        lambda data: codec.decode_state("/s", data, 0),
        lambda data: codec.decode_topic("/t", data),
        lambda data: codec.decode_isr_change("/n", data),
    ]
    for decode in decoders:
        with suppress(MalformedZNode):
            decode(data)
