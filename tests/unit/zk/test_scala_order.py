"""The orders of Scala's hash tables, against what real Kafka 2.6.3 sent and wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zk.client import codec
from zk.client.codec import TopicPartition
from zk.scala.java_hash import hash_set_order, id_set_order, java_hash, signed
from zk.scala.library import SCALA_2_11, SCALA_2_13, ScalaLibrary, immutable_set
from zk.scala.murmur import named_product_hash
from zk.scala.scala_order import (
    immutable_order,
    table_order,
    topic_partition_hash,
    trie_order,
)

ROOT = Path(__file__).parents[3]
MASK = 0xFFFFFFFF


def partition_and_replica_hash(topic: str, partition: int, replica: int) -> int:
    """Hash of the case class PartitionAndReplica (ControllerState of 2.6.3): MurmurHash3's
    product hash."""
    fields = (topic_partition_hash(topic, partition), replica & MASK)
    return named_product_hash("PartitionAndReplica", fields)


def partitions(text: str) -> list[TopicPartition]:
    pairs = [name.rpartition("-") for name in text.split()]
    return [TopicPartition(topic, int(partition)) for topic, _, partition in pairs]


NOTIFIED = {
    "kafka-2.6.3/bounce-unseen": "orders-0 orders-1",
    "kafka-2.6.3/random-7, two": "clicks-0 orders-0",
    "kafka-2.6.3/random-8, two": "clicks-1 orders-1",
    "kafka-2.6.3/random-8, two others": "orders-2 clicks-0",
    "kafka-2.6.3/random-7, three": "orders-2 clicks-1 orders-1",
    "kafka-2.6.3/random-8, three": "clicks-1 orders-0 orders-1",
    "kafka-2.6.3/shrink-expand-many, odd": "a-1 b-1 a-3",
    "kafka-2.6.3/shrink-expand-many, even": "a-0 b-0 a-2",
    "repeats/kafka-2.6.3/random-7/3": "orders-2 clicks-0 orders-0",
    "kafka-2.6.3/random-7, five": "orders-2 clicks-1 clicks-0 orders-0 orders-1",
}


@pytest.mark.parametrize("recording", NOTIFIED)
def test_a_notification_lists_its_partitions_in_the_recorded_order(recording: str) -> None:
    recorded = partitions(NOTIFIED[recording])
    assert codec.isr_change_order(sorted(recorded)) == recorded
    assert codec.isr_change_order(reversed(recorded)) == recorded


def test_the_notification_of_600_partitions_is_written_byte_by_byte_as_recorded() -> None:
    """kafka-2.6.3/shrink-storm: the table has grown to 1,024 buckets."""
    data = codec.encode_isr_change(TopicPartition("orders", p) for p in range(600))
    recorded = "405d4be952ff2b7324197bb9f3c352180ed7970440a30414bb2d6bdc9c874241"
    assert sha256(data).hexdigest() == recorded


ALL_FIVE = partitions("clicks-0 clicks-1 orders-0 orders-1 orders-2")


def test_the_reads_of_a_fail_over_and_of_dead_brokers_go_in_the_recorded_order() -> None:
    """kafka-2.6.3/random-8 at 23,523, 23,567 and 10,529 ms."""
    of_all = immutable_order(ALL_FIVE, lambda it: topic_partition_hash(*it))
    assert of_all == partitions("orders-0 clicks-1 orders-1 clicks-0 orders-2")
    fail_over = table_order(ALL_FIVE, lambda it: partition_and_replica_hash(*it, 3))
    assert fail_over == partitions("clicks-1 orders-1 orders-0 clicks-0 orders-2")
    broker_died = trie_order(ALL_FIVE, lambda it: partition_and_replica_hash(*it, 1))
    assert broker_died == partitions("clicks-0 orders-1 clicks-1 orders-2 orders-0")


@pytest.mark.parametrize(
    ("inserted", "emitted"),
    [
        (
            "version leader leader_epoch controller_epoch isr",
            "controller_epoch leader version leader_epoch isr",
        ),
        (
            "version leader leader_epoch controller_epoch isr leader_recovery_state",
            "controller_epoch leader version leader_recovery_state leader_epoch isr",
        ),
        ("version host port jmx_port timestamp", "jmx_port timestamp host version port"),
        (
            "version host port jmx_port timestamp endpoints",
            "jmx_port timestamp endpoints host version port",
        ),
        ("version brokerid timestamp", "version brokerid timestamp"),
        ("version partitions adding removing", "version partitions adding removing"),
    ],
)
def test_an_immutable_map_emits_its_keys_as_kafka_s_payloads_show(
    inserted: str, emitted: str
) -> None:
    assert immutable_order(inserted.split(), java_hash) == emitted.split()


@pytest.mark.parametrize(
    ("emitted", "buckets"),
    [
        ("listener_security_protocol_map endpoints rack jmx_port port host version timestamp", 16),
        ("features listener_security_protocol_map endpoints jmx_port port host version", 16),
        ("partitions topic_id adding_replicas removing_replicas version", 8),
        ("features version status", 8),
        ("11 0 1 2 3 4 5 6 7 8 9 10", 16),
        ("0 1 2 3", 16),
    ],
)
def test_a_mutable_map_emits_its_keys_as_kafka_s_payloads_show(emitted: str, buckets: int) -> None:
    assert table_order(sorted(emitted.split()), java_hash, buckets) == emitted.split()


def test_java_s_hash_code() -> None:
    assert java_hash("") == 0
    assert signed(java_hash("hello")) == 99162322
    assert signed(java_hash("polygenelubricants")) == -(2**31)
    assert java_hash("AaAa") == java_hash("BBBB") == java_hash("AaBB")
    assert java_hash("ö") == 0xF6
    assert java_hash("😀") == 0xD83D * 31 + 0xDE00


@pytest.mark.parametrize(
    "row",
    [
        "3 1 2 -> 1 2 3",
        "5 1 4 -> 4 5 1",
        "9 1 5 -> 9 1 5",
        "1001 1002 1003 1000 -> 1000 1001 1002 1003",
        "70000 4 3 -> 4 70000 3",
        "12 8 4 0 -> 8 0 12 4",
        "16 15 1 -> 16 1 15",
    ],
)
def test_a_set_of_ids_lists_them_as_java_17_did(row: str) -> None:
    """`new HashSet<Integer>(n)`, filled from left to right and printed."""
    added, _, listed = row.partition(" -> ")
    assert id_set_order([int(one) for one in added.split()]) == [int(n) for n in listed.split()]


@given(st.lists(st.text(max_size=6), max_size=60, unique=True))
def test_every_order_is_a_permutation(names: list[str]) -> None:
    assert sorted(table_order(names, java_hash)) == sorted(names)
    assert sorted(trie_order(names, java_hash)) == sorted(names)
    assert sorted(hash_set_order(names)) == sorted(names)


TABLE = Path(__file__).with_name("scala-orders.jsonl.gz")
"""Orders of the real libraries' collections (`python -m tools.scala_orders`)."""


def listed_by(library: ScalaLibrary, case: str) -> str:
    """Our order of a case of the table."""
    collection, kind, *steps = case.split(" ")

    def hash_of(element: str) -> int:
        return int(element) & MASK if kind == "int" else java_hash(element)

    if collection.startswith("mutable."):
        order = library.map_order if collection.endswith("Map") else library.set_order
        return " ".join(order([step[1:] for step in steps], hash_of))
    members, is_trie = (), False
    for step in steps:
        rest = tuple(member for member in members if member != step[1:])
        after = (*members, step[1:]) if step[0] == "+" else rest
        members, is_trie = immutable_set(after, library, hash_of, is_trie=is_trie)
    return " ".join(members)


def test_every_collection_lists_what_those_of_real_libraries_list() -> None:
    rows = [json.loads(line) for line in gzip.decompress(TABLE.read_bytes()).splitlines()]
    assert len(rows) == 480
    for row in rows:
        for version, order in row["orders"].items():
            library = SCALA_2_13 if version.startswith("2.13.") else SCALA_2_11
            assert listed_by(library, row["case"]) == order, (version, row["case"])


def test_up_to_1_0_a_notification_lists_partition_1_before_0() -> None:
    """kafka-1.0.2/zombie-controller at 30,346 ms."""
    data = codec.encode_isr_change(
        [TopicPartition("orders", 0), TopicPartition("orders", 1)], SCALA_2_11, scala_maps=True
    )
    assert data.decode() == (
        '{"version":1,"partitions":[{"topic":"orders","partition":1},'
        '{"topic":"orders","partition":0}]}'
    )


def notifications(text: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it is of a version up to 1.0."""
    is_old = False
    for line in text.splitlines():
        fact = json.loads(line)
        if fact["kind"] == "settings":
            is_old = fact["kafka"].startswith(("0.", "1.0."))
        created = fact["kind"] == "zookeeper" and "data" in fact
        if created and fact.get("path", "").startswith("/isr_change_"):
            yield fact["data"], is_old


def judge(texts: Iterator[str]) -> int:
    """How many notifications there were; all of them must be what we would have written."""
    count = 0
    for text in texts:
        for data, is_old in notifications(text):
            named = sorted(codec.decode_isr_change("/n", data.encode()))
            library = SCALA_2_11 if is_old else SCALA_2_13
            written = codec.encode_isr_change(named, library, scala_maps=is_old)
            assert written.decode() == data
            count += 1
    return count


def test_every_recorded_notification_is_written_byte_by_byte() -> None:
    files = sorted((ROOT / "tests" / "recordings").glob("**/recording.jsonl.gz"))
    assert judge(gzip.decompress(it.read_bytes()).decode() for it in files) >= 35


@pytest.mark.shared
def test_every_notification_of_every_recording_is_written_byte_by_byte() -> None:
    files = sorted((ROOT.parent / "shared" / "recordings").glob("**/recording.jsonl"))
    assert judge(it.read_text() for it in files) >= 90


@pytest.mark.parametrize(
    ("library", "order"), [(SCALA_2_11, [2, 1, 3]), (SCALA_2_13, [1, 2, 3])], ids=["2.11", "2.13"]
)
def test_brokers_are_grouped_in_the_order_of_recorded_state_changes(
    library: ScalaLibrary, order: list[int]
) -> None:
    """Replicas of brokers 1 to 3 become new and online in this order (1.1.1 and 2.1.1, 2.4.1 and
    2.8.2); of five brokers those of the fifth come first (2.6.3)."""
    assert library.grouped_order([1, 2, 3], int) == order
    assert library.grouped_order([4, 5], int) == [5, 4]
