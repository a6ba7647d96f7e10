"""Clients of other houses against brokers as processes: what they see, produce and consume."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial

import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from kafka.errors import NotEnoughReplicasError, NotLeaderForPartitionError

from tests.live.processes.cluster import Brokers, three_brokers
from tests.live.processes.kcat import Kcat
from tests.live.processes.situations import move_leader, nobody_is_told

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    folder = tmp_path_factory.mktemp("brokers")
    long = ("zookeeper.session.timeout.ms=30000", "auto.leader.rebalance.enable=false")
    with three_brokers(folder, "replica.lag.time.max.ms=2000", *long) as running:
        yield running


def librdkafka(brokers: Brokers, **more: object) -> dict[str, object]:
    quiet = {"log_level": 0, "socket.timeout.ms": 10_000}
    return {"bootstrap.servers": brokers.bootstrap, **quiet, **more}


def produced(brokers: Brokers, topic: str, acks: str, value: bytes) -> object:
    """The error, or the offset."""
    producer, told = Producer(librdkafka(brokers, acks=acks, retries=0)), []
    producer.produce(topic, value, partition=0, on_delivery=lambda e, m: told.append(e or m))
    producer.flush(20)
    (result,) = told
    return result.offset() if hasattr(result, "offset") else result.name()


def consumed(brokers: Brokers, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(librdkafka(brokers, **{"group.id": "none", "enable.auto.commit": False}))
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=20)
        assert messages, found
        found += [one.value() for one in messages if one.error() is None]  # of the refused group
    consumer.close()
    return found


def test_confluent_kafka_creates_lists_produces_and_consumes(brokers: Brokers) -> None:
    admin = AdminClient(librdkafka(brokers))
    admin.create_topics([NewTopic("confluent", 2, 3)])["confluent"].result(20)
    listed = admin.list_topics(timeout=10)
    assert sorted(listed.brokers) == [1, 2, 3]
    assert listed.controller_id == brokers.controller()
    partitions = listed.topics["confluent"].partitions
    assert [sorted(p.replicas) for p in partitions.values()] == [[1, 2, 3]] * 2
    assert [sorted(p.isrs) for p in partitions.values()] == [[1, 2, 3]] * 2
    assert produced(brokers, "confluent", "1", b"one") == 0
    assert produced(brokers, "confluent", "all", b"all") == 1
    produced(brokers, "confluent", "0", b"none")
    assert consumed(brokers, "confluent", 3) == [b"one", b"all", b"none"]


def test_confluent_kafka_alters_topics(brokers: Brokers) -> None:
    brokers.create("altered", (1, 2), min_insync_replicas="2")
    admin = AdminClient(librdkafka(brokers))
    admin.create_partitions([NewPartitions("altered", 3)])["altered"].result(20)
    assert len(admin.list_topics("altered", timeout=10).topics["altered"].partitions) == 3
    resource = ConfigResource(ConfigResource.Type.TOPIC, "altered")
    (described,) = admin.describe_configs([resource]).values()
    assert described.result(10)["min.insync.replicas"].value == "2"
    admin.delete_topics(["altered"])["altered"].result(20)
    assert "altered" not in admin.list_topics(timeout=10).topics


def test_kafka_python_lists_produces_and_consumes(brokers: Brokers) -> None:
    brokers.create("python", (2, 3, 1))
    producer = kafka.KafkaProducer(
        bootstrap_servers=brokers.bootstrap, acks="all", enable_idempotence=False
    )
    assert producer.send("python", b"hello", partition=0).get(20).offset == 0
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=brokers.bootstrap, group_id=None, auto_offset_reset="earliest"
    )
    consumer.assign([kafka.TopicPartition("python", 0)])
    assert next(consumer).value == b"hello"
    consumer.close()
    admin = kafka.KafkaAdminClient(bootstrap_servers=brokers.bootstrap)
    (topic,) = admin.describe_topics(["python"])
    admin.close()
    (partition,) = topic["partitions"]
    assert (partition["leader_id"], partition["isr_nodes"]) == (2, [2, 3, 1])


def test_kafka_python_finds_offsets_by_time(brokers: Brokers) -> None:
    brokers.create("times", (1, 2, 3))
    producer = kafka.KafkaProducer(bootstrap_servers=brokers.bootstrap)
    for time_ms in (1000, 2000):
        producer.send("times", b"x", partition=0, timestamp_ms=time_ms).get(20)
    producer.close()
    partition = kafka.TopicPartition("times", 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=brokers.bootstrap, group_id=None)
    brokers.until(lambda: consumer.end_offsets([partition])[partition], lambda end: end == 2)
    by_time = consumer.offsets_for_times({partition: 1001})[partition]
    assert (by_time.offset, by_time.timestamp) == (1, 2000)
    consumer.close()


def test_acks_all_is_refused_while_the_isr_is_too_small(brokers: Brokers) -> None:
    """And acks=1 is not."""
    brokers.create("strict", (1, 3), min_insync_replicas="2")
    brokers.by_id[3].pause()
    try:
        brokers.until(
            lambda: brokers.partition(1, "strict"), lambda s: s is not None and s.isr == (1,)
        )
        assert produced(brokers, "strict", "all", b"x") == "NOT_ENOUGH_REPLICAS"
        assert produced(brokers, "strict", "1", b"x") == 0
        with pytest.raises(NotEnoughReplicasError):
            _send_by_kafka_python(brokers, "strict")
    finally:
        brokers.by_id[3].resume()
    brokers.until(
        lambda: brokers.partition(1, "strict"), lambda s: s is not None and len(s.isr) == 2
    )
    assert produced(brokers, "strict", "all", b"x") == 1


def _send_by_kafka_python(brokers: Brokers, topic: str) -> None:
    """Through the leader: a suspended broker would delay the client for half a minute."""
    leader = f"127.0.0.1:{brokers.ports[1]}"
    producer = kafka.KafkaProducer(
        bootstrap_servers=leader, acks="all", enable_idempotence=False, retries=0
    )
    try:
        producer.send(topic, b"x", partition=0).get(20)
    finally:
        producer.close()


def test_metadata_is_that_brokers_cache_however_old(brokers: Brokers, kcat: Kcat) -> None:
    """ZooKeeper and the leader have the smaller ISR. Until the controller has informed this broker,
    clients get the old ISR from it."""
    with nobody_is_told(brokers, "untold") as (leader, follower, controller):
        asked = (brokers, leader, "untold")
        assert isrs_by_kcat(kcat, *asked) == [leader, follower]
        assert isrs_by_confluent(*asked) == [leader, follower]
        assert isrs_by_kafka_python(*asked) == [leader, follower]
        controller.resume()
        for isrs in (isrs_by_confluent, isrs_by_kafka_python, partial(isrs_by_kcat, kcat)):
            brokers.until(lambda isrs=isrs: isrs(*asked), lambda found: found == [leader])


def isrs_by_confluent(brokers: Brokers, asked: int, topic: str) -> list[int]:
    one = f"127.0.0.1:{brokers.ports[asked]}"
    admin = AdminClient({**librdkafka(brokers), "bootstrap.servers": one})
    return list(admin.list_topics(topic, timeout=10).topics[topic].partitions[0].isrs)


def isrs_by_kafka_python(brokers: Brokers, asked: int, topic: str) -> list[int]:
    """Once it knows all brokers it chooses any of them, and waits long for a suspended one: it is
    made to choose this one."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{brokers.ports[asked]}")
    try:
        admin._manager.least_loaded_node = lambda: asked
        (found,) = admin.describe_topics([topic])
        return list(found["partitions"][0]["isr_nodes"])
    finally:
        admin.close()


def isrs_by_kcat(kcat: Kcat, brokers: Brokers, asked: int, topic: str) -> list[int]:
    (listed,) = json.loads(kcat(brokers, asked, "-L", "-J", "-t", topic))["topics"]
    return [one["id"] for one in listed["partitions"][0]["isrs"]]


def test_a_leader_that_moved_answers_that_it_is_none(brokers: Brokers) -> None:
    """kafka-python without retries raises an error; librdkafka requests metadata and goes to the
    new leader, with or without retries. With acks=1 the new leader might lack records that the old
    one acknowledged."""
    brokers.create("moved", (1, 2))
    python = kafka.KafkaProducer(
        bootstrap_servers=brokers.bootstrap, acks="all", enable_idempotence=False, retries=0
    )
    refused: list[str] = []
    told: list[int] = []
    wordy = {**librdkafka(brokers, acks="all", retries=0), "debug": "msg", "log_level": 7}
    confluent = Producer(wordy, logger=noted(refused))
    assert python.send("moved", b"x", partition=0).get(20).offset == 0
    deliver(confluent, "moved", told)
    move_leader(brokers, "moved", 1, 2)
    with pytest.raises(NotLeaderForPartitionError):
        python.send("moved", b"x", partition=0).get(20)
    python.close()
    deliver(confluent, "moved", told)
    assert told == [1, 2]
    assert any("Broker: Not leader for partition" in line for line in refused), refused


def deliver(producer: Producer, topic: str, offsets: list[int]) -> None:
    producer.produce(topic, b"x", partition=0, on_delivery=lambda e, m: offsets.append(m.offset()))
    assert producer.flush(20) == 0


def noted(lines: list[str]) -> logging.Logger:
    """A log that is a list."""

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    log = logging.getLogger("noted")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(Noting())
    return log
