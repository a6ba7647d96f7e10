"""A real consumer reads from the replica in its rack (KIP-392)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from emulator.kafka.model.config import RACK_AWARE_SELECTOR
from tests.live.processes.cluster import three_brokers
from tests.live.processes.test_clients import librdkafka, produced

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_librdkafka_reads_from_the_follower_in_its_rack(tmp_path: Path) -> None:
    sets = ("broker.rack=rack-{broker}", f"replica.selector.class={RACK_AWARE_SELECTOR}")
    with three_brokers(tmp_path, *sets) as brokers:
        brokers.create("orders", (1, 2, 3))
        for number in range(3):
            assert produced(brokers, "orders", "all", b"%d" % number) == number
        read_from: list[tuple[int, int]] = []

        def on_statistics(text: str) -> None:
            partition = json.loads(text)["topics"].get("orders", {}).get("partitions", {}).get("0")
            if partition is not None:
                read_from.append((partition["leader"], partition["broker"]))

        consumer = Consumer(
            librdkafka(
                brokers,
                **{"group.id": "none", "client.rack": "rack-2", "enable.auto.commit": False},
                **{"statistics.interval.ms": 100, "stats_cb": on_statistics},
            )
        )
        consumer.assign([TopicPartition("orders", 0, 0)])
        values: list[bytes] = []

        def reads() -> tuple[list[bytes], list[tuple[int, int]]]:
            for message in consumer.consume(10, timeout=1):
                assert message.error() is None
                values.append(message.value())
            return values, read_from[-1:]

        brokers.until(reads, lambda seen: seen == ([b"0", b"1", b"2"], [(1, 2)]))
        consumer.close()
