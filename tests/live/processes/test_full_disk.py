"""Brokers as processes whose disk is full: acknowledged records survive.

A limit on the size of a broker's files replaces a full disk: the kernel writes the part of a batch
that fits, and refuses the rest, like a full disk; this needs no root privileges.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from emulator.kafka.protocol.messages import ProducePartition, ProduceRequest, ProduceResponse
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.blocking_client import Unreachable, send_request
from emulator.worlds.wire.records import filled
from tests.live.processes.cluster import Brokers, three_brokers

pytestmark = [pytest.mark.live, pytest.mark.slow]
LIMIT = 4_000_000
"""More than a trace of these tests has: it is a file too."""

RECORD = 150_000


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    settings = ("zookeeper.session.timeout.ms=2000", "replica.lag.time.max.ms=3000")
    with three_brokers(tmp_path, *settings) as running:
        yield running


def limit_files(brokers: Brokers, broker: int, size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]  # the child has it from us
    resource.prlimit(brokers.by_id[broker].pid, resource.RLIMIT_FSIZE, (size, hard))


def acknowledged(brokers: Brokers, topic: str, number: int) -> bool:
    """Send a record with this number as its time and acks=all to the current leader."""
    data = filled(1, RECORD, number)
    wanted = ProducePartition(TopicPartition(topic, 0), 1, len(data), data)
    for port in brokers.ports.values():
        try:
            answer = send_request(("127.0.0.1", port), ProduceRequest(-1, 10_000, (wanted,)), 20)
        except Unreachable:
            continue
        assert isinstance(answer, ProduceResponse)
        if answer.partitions[0].error.name == "NONE":
            return True
    return False


def readable(brokers: Brokers, topic: str, least: int) -> list[int]:
    """The numbers of all records; there are that many, and maybe more."""
    settings = {"bootstrap.servers": brokers.bootstrap, "log_level": 0, "group.id": "none"}
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    numbers: list[int] = []
    while messages := consumer.consume(100, timeout=20 if len(numbers) < least else 3):
        numbers += [one.timestamp()[1] for one in messages if one.error() is None]
    consumer.close()
    return numbers


def segment(brokers: Brokers, broker: int, topic: str) -> Path:
    return brokers.folder / f"data-{broker}" / f"{topic}-0" / f"{0:020}.log"


def test_what_three_brokers_on_a_full_disk_acknowledged_is_there_when_they_are_back(
    brokers: Brokers,
) -> None:
    brokers.create("shared", (1, 2, 3), min_insync_replicas="2")
    for broker in brokers.by_id:
        limit_files(brokers, broker, LIMIT)
    kept = [n for n in range(LIMIT // RECORD + 3) if acknowledged(brokers, "shared", n)]
    assert len(kept) == LIMIT // RECORD
    assert brokers.by_id[1].exit_code(30) == 1
    said = brokers.by_id[1].log_text()
    (line,) = [one for one in said.splitlines() if "is offline" in one]
    assert f"log directory {brokers.folder / 'data-1'} is offline: " in line
    assert "File too large; nothing in it is served until the broker starts again" in line
    brokers.restart(1, 2, 3)
    brokers.until(
        lambda: brokers.partition(1, "shared"), lambda s: s is not None and len(s.isr) == 3
    )
    assert set(kept) <= set(readable(brokers, "shared", len(kept)))


def test_space_that_comes_back_is_not_written_to_until_the_broker_starts_again(
    brokers: Brokers,
) -> None:
    """The only replica: the limit goes as soon as the disk is full, or a record was refused."""
    brokers.create("alone", (2,))
    limit_files(brokers, 2, LIMIT)
    kept = [n for n in range(LIMIT // RECORD + 1) if acknowledged(brokers, "alone", n)]
    if not brokers.by_id[2].is_dead:
        limit_files(brokers, 2, resource.RLIM_INFINITY)
    assert len(kept) == LIMIT // RECORD
    assert not acknowledged(brokers, "alone", 1000)
    assert segment(brokers, 2, "alone").stat().st_size < LIMIT
    brokers.restart(2)
    brokers.until(lambda: brokers.partition(2, "alone"), lambda s: s is not None and s.leader == 2)
    assert readable(brokers, "alone", len(kept)) == kept
    assert acknowledged(brokers, "alone", 2000)
