"""In which order a batch asks about partitions (spec §6.15): as recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from emulator.conformance import player
from emulator.conformance.recording import Recording, read_recording
from emulator.kafka.controller.cache_order import CacheOrder, PartitionAndReplica
from emulator.kafka.profiles.base import profiles
from emulator.trace.values import TopicPartition

RECORDINGS = Path("tools/fidelity/recordings")


def named(text: str) -> list[TopicPartition]:
    """`t-0 t-1`."""
    parts = (name.rsplit("-", 1) for name in text.split())
    return [TopicPartition(topic, int(number)) for topic, number in parts]


def text(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(str(partition) for partition in partitions)


def order_of(version: str) -> CacheOrder:
    return CacheOrder(profiles()[version])


def test_four_replicas_of_a_dead_broker_are_read_by_topic_and_written_in_table_order() -> None:
    """2.6.3, random script 116, broker 4."""
    order, created = order_of("2.6"), named("t1-0 drawn-1-0 drawn-2-1 drawn-2-2")
    read = order.replicas_as_set(PartitionAndReplica(p, 4) for p in order.assigned(created))
    assert text(r.partition for r in read) == "drawn-1-0 drawn-2-1 drawn-2-2 t1-0"
    written = order.filtered(order.selected(r.partition for r in read), read)
    assert text(written) == "drawn-2-2 drawn-1-0 drawn-2-1 t1-0"


def test_what_is_filtered_from_five_is_still_a_hash_trie() -> None:
    """2.6.3, random script 118: of five states that were read three had the replica in the ISR."""
    order = order_of("2.6")
    read = order.selected(named("t0-1 t0-2 t1-1 t1-3 t1-4"))
    members = [p for p in read if p.topic == "t1"]
    assert text(members) == "t1-1 t1-4 t1-3"
    assert text(order.filtered(members, read)) == "t1-1 t1-3 t1-4"


def test_at_a_fail_over_offline_replicas_are_a_mutable_set() -> None:
    """2.6.3, random script 102, broker 2."""
    replicas = [PartitionAndReplica(p, 2) for p in named("t0-0 t0-1 t1-0 t1-1 t1-2 t1-3")]
    collected = order_of("2.6").replicas_collected(replicas)
    assert text(r.partition for r in collected) == "t1-2 t1-3 t1-0 t1-1 t0-1 t0-0"


def test_the_assignments_are_a_map_of_maps_from_2_0_on() -> None:
    """2.6.3, random script 126, and 2.1.1, five-brokers-pauses."""
    assert text(order_of("2.6").assigned(named("t1-1 t0-1 t1-0 t0-0"))) == "t0-0 t0-1 t1-0 t1-1"
    of_2_1 = order_of("2.1").assigned(named("orders-0 orders-1 orders-2 audit-0"))
    assert text(of_2_1) == "orders-2 orders-1 orders-0 audit-0"


def test_before_they_are_one_map() -> None:
    """1.1.1, five-brokers-crashes."""
    of_1_1 = order_of("1.1").assigned(named("orders-0 orders-1 clicks-1 audit-0"))
    assert text(of_1_1) == "clicks-1 audit-0 orders-1 orders-0"


@pytest.mark.parametrize(
    "name", ["kafka-2.4.1/five-brokers-crashes", "kafka-2.8.2/five-brokers-pauses"]
)
def test_batches_of_state_requests_have_the_recorded_order(name: str) -> None:
    real = read_recording(RECORDINGS / name)
    ours = batches(player.simulate(player.script_of(real), 1))
    for key, recorded in batches(real).items():
        assert not ours[key] or recorded & ours[key]


def batches(recording: Recording) -> dict[tuple[str, frozenset[str]], set[tuple[str, ...]]]:
    """The orders in which one broker asked about several states within 2 ms, by operation and
    states."""
    found: dict[tuple[str, frozenset[str]], set[tuple[str, ...]]] = defaultdict(set)
    batch: list[str] = []
    before = (0, "", 0)
    for fact in recording.of("zookeeper_request"):
        path = fact["ops"][-1].get("path") if fact.get("ops") else fact.get("path")
        if path is None or not path.endswith("/state"):
            continue
        broker, op, t = fact["broker"], fact["op"], fact["t"]
        if (broker, op) != before[:2] or t - before[2] > 2 or path in batch:
            batch = []
        batch.append(path)
        before = (broker, op, t)
        if len(batch) > 1:
            found[op, frozenset(batch)].add(tuple(batch))
    return found
