"""Clients of other houses delete records; what a restart with --data finds of logs and groups."""

from __future__ import annotations

from pathlib import Path

import kafka
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from kafka.errors import OffsetOutOfRangeError

from tests.live.processes.cluster import Brokers, three_brokers
from tests.live.processes.test_clients import librdkafka, produced

pytestmark = [pytest.mark.live, pytest.mark.slow]

ORDERS = "orders"


def offsets_of(brokers: Brokers) -> tuple[int, int]:
    """Where the log starts, and what is committed of it, as a consumer is told."""
    consumer = Consumer(librdkafka(brokers, **{"group.id": "offsets"}))
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(ORDERS, 0), timeout=20)
        return low, high
    finally:
        consumer.close()


def committed(brokers: Brokers) -> int:
    consumer = Consumer(librdkafka(brokers, **{"group.id": "readers"}))
    try:
        (one,) = consumer.committed([TopicPartition(ORDERS, 0)], timeout=30)
        return int(one.offset)
    finally:
        consumer.close()


def test_records_are_deleted_by_both_clients_and_a_restart_finds_logs_and_groups_as_they_were(
    tmp_path: Path,
) -> None:
    # All of them stop at once: the last would look for a controller until it is killed.
    sets = ("offsets.topic.num.partitions=1", "controlled.shutdown.enable=false")
    with three_brokers(tmp_path, *sets) as brokers:
        brokers.create(ORDERS, (1, 2, 3))
        for number in range(10):
            assert produced(brokers, ORDERS, "all", b"%d" % number) == number

        admin = AdminClient(librdkafka(brokers))
        # Answered when all three replicas start there.
        (result,) = admin.delete_records([TopicPartition(ORDERS, 0, 4)]).values()
        assert result.result(20).low_watermark == 4
        assert offsets_of(brokers) == (4, 10)
        # One that reads from 0 goes on with the first that is left (auto.offset.reset).
        earliest = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer(librdkafka(brokers, **{"group.id": "readers"}, **earliest))
        consumer.assign([TopicPartition(ORDERS, 0, 0)])
        (first,) = consumer.consume(1, timeout=20)
        assert (first.offset(), first.value()) == (4, b"4")
        consumer.commit(offsets=[TopicPartition(ORDERS, 0, 7)], asynchronous=False)
        consumer.close()

        other = kafka.KafkaAdminClient(bootstrap_servers=brokers.bootstrap)
        partition = kafka.TopicPartition(ORDERS, 0)
        assert other.delete_records({partition: 6})[partition]["low_watermark"] == 6
        with pytest.raises(OffsetOutOfRangeError):
            other.delete_records({partition: 11})
        other.close()
        assert offsets_of(brokers) == (6, 10)

        for broker in brokers.by_id.values():
            broker.terminate()
        for broker in brokers.by_id.values():
            broker.join()
        for broker in brokers.by_id.values():
            broker.launch()
        brokers.until(lambda: brokers.metadata(1), lambda m: len(m.brokers) == 3)
        brokers.until(
            lambda: brokers.partition(1, ORDERS), lambda p: p is not None and len(p.isr) == 3
        )
        assert offsets_of(brokers) == (6, 10)
        # Its coordinator has read __consumer_offsets.
        assert committed(brokers) == 7
        consumer = Consumer(librdkafka(brokers, **{"group.id": "readers"}, **earliest))
        consumer.assign([TopicPartition(ORDERS, 0, 0)])
        messages = consumer.consume(4, timeout=20)
        assert [one.value() for one in messages] == [b"6", b"7", b"8", b"9"]
        consumer.close()
