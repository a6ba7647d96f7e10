"""Brokers are killed again and again while a real client produces with acks=all: what it was
acknowledged is there.

A round kills one broker, two, or all three after a drawn number of acknowledgements, and starts
them. The checker of `isr soak` judges what the client saw.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from emulator.search.soak.checker import DUPLICATED, REORDERED, judge
from emulator.search.soak.history import Operation, OperationKind
from tests.live.processes.cluster import PATIENCE_S, Brokers, three_brokers

pytestmark = [pytest.mark.live, pytest.mark.slow]
ROUNDS, MANY_ROUNDS = 5, 200
TOPIC, PARTITIONS = "orders", 3
ACKNOWLEDGEMENTS = 60
"""At most so many between a start and the next kill."""

VICTIMS = [1, 1, 1, 1, 2, 2, 3]


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    settings = {
        "zookeeper.session.timeout.ms": 1500,
        "replica.lag.time.max.ms": 2000,
        "unclean.leader.election.enable": "false",
    }
    with three_brokers(tmp_path, *(f"{key}={value}" for key, value in settings.items())) as running:
        yield running


class Client:
    """Produces one record after the other, and notes what it saw."""

    def __init__(self, brokers: Brokers) -> None:
        self.history: list[Operation] = []
        self.acknowledged = 0
        self._began_ns = time.monotonic_ns()
        self._number = 0
        self._bootstrap = {"bootstrap.servers": brokers.bootstrap, "log_level": 0}
        self._producer = confluent_kafka.Producer(
            {
                **self._bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 2000,
            }
        )

    def _note(self, op: OperationKind, client: str = "c", **fields: object) -> None:
        at_us = (time.monotonic_ns() - self._began_ns) // 1000
        self.history.append(Operation(at_us, client, op, **fields))  # type: ignore[arg-type]

    def produce_until_acknowledged(self, count: int) -> None:
        """So many more than now."""
        wanted, ends_s = self.acknowledged + count, time.monotonic() + PATIENCE_S
        while self.acknowledged < wanted:
            assert time.monotonic() < ends_s, "nothing is acknowledged"
            self._send()
            self._producer.poll(0.01)

    def _send(self) -> None:
        if len(self._producer) > 500:
            return
        record, number = f"c.{self._number}", self._number % PARTITIONS
        self._number += 1
        partition = f"{TOPIC}-{number}"
        self._note("send", partition=partition, record=record)

        def delivered(error: object, message: confluent_kafka.Message) -> None:
            if error is None:
                self.acknowledged += 1
                offset = message.offset()
                self._note("acknowledged", partition=partition, record=record, offset=offset)
            else:
                self._note("failed", partition=partition, record=record, error=str(error))

        self._producer.produce(TOPIC, record.encode(), partition=number, on_delivery=delivered)

    def read_all(self) -> None:
        """When all that is under way has ended: each partition up to its end."""
        assert self._producer.flush(PATIENCE_S * 3) == 0
        consumer = confluent_kafka.Consumer(
            {**self._bootstrap, "group.id": "none", "enable.auto.commit": False}
        )
        for number in range(PARTITIONS):
            place = confluent_kafka.TopicPartition(TOPIC, number, 0)
            low, high = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
            consumer.assign([place])
            offset = low
            while offset < high:
                # One by one: `consume` waits until it has as many as it was asked for.
                message = consumer.poll(PATIENCE_S)
                assert message, f"{TOPIC}-{number} ends at {high}, read up to {offset}"
                assert message.error() is None
                text = (message.value() or b"").decode()
                offset = message.offset() + 1
                partition = f"{TOPIC}-{number}"
                self._note("read", "r", partition=partition, offset=offset - 1, records=(text,))
            self._note("end", "r", partition=f"{TOPIC}-{number}", offset=low, until=high)
        consumer.close()


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=pytest.mark.soak)])
def test_nothing_acknowledged_is_lost_when_brokers_are_killed(
    brokers: Brokers, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.create(TOPIC, (1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    for number in brokers.by_id:
        brokers.until(lambda n=number: brokers.partition(n, TOPIC), lambda s: s is not None)
    chance, client, killed = random.Random(rounds), Client(brokers), 0
    for _ in range(rounds):
        client.produce_until_acknowledged(1 + chance.randrange(ACKNOWLEDGEMENTS))
        victims = chance.sample(sorted(brokers.by_id), chance.choice(VICTIMS))
        killed += len(victims)
        brokers.restart(*victims)
    client.produce_until_acknowledged(1)
    for number in range(PARTITIONS):
        brokers.until(
            lambda n=number: brokers.partition(1, TOPIC, n),
            lambda s: s is not None and len(s.isr) == 3,
        )
    client.read_all()
    verdict = judge(client.history)
    with capsys.disabled():
        print(
            f"\n{rounds} rounds, {killed} kills: {verdict.sent:,} sent,"
            f" {verdict.acknowledged:,} acknowledged, {verdict.failed} failed; {verdict.counts}"
        )
    assert verdict.unread == ()
    # A client that took another producer epoch may have sent a record twice; nothing here says so.
    assert [one for one in verdict.findings if one.kind not in (DUPLICATED, REORDERED)] == []
    assert verdict.acknowledged > rounds
