"""Kafka 2.6.3's own tools against brokers as processes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.groups import (
    CommittedOffset,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from emulator.trace.values import TopicPartition
from emulator.worlds.clients.blocking_client import send_request
from emulator.worlds.real_kafka.release import find_release
from tests.live.processes.cluster import Brokers, three_brokers
from zk.real.server import find_java

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """The controller leaves elections to the tools."""
    by_hand = "auto.leader.rebalance.enable=false"
    one = "offsets.topic.num.partitions=1"
    with three_brokers(tmp_path_factory.mktemp("brokers"), by_hand, one) as running:
        yield running


def tool(brokers: Brokers, name: str, *words: object) -> str:
    """The output of a command of `kafka.admin`."""
    release = find_release("2.6.3", None)
    command = [find_java(), "-cp", release.class_path, f"kafka.admin.{name}"]
    command += ["--bootstrap-server", brokers.bootstrap, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_own_tools(brokers: Brokers, tmp_path: Path) -> None:
    """kafka-topics, kafka-reassign-partitions, kafka-leader-election, one after the other."""
    create = ("--create", "--topic", "orders", "--replica-assignment", "1:2")
    assert "Created topic orders" in tool(brokers, "TopicCommand", *create)
    described = tool(brokers, "TopicCommand", "--describe", "--topic", "orders")
    assert "Leader: 1\tReplicas: 1,2\tIsr: 1,2" in described
    moves = {"version": 1, "partitions": [_to(3, 1, 2)]}
    (tmp_path / "moves.json").write_text(json.dumps(moves))
    how = ("--reassignment-json-file", tmp_path / "moves.json")
    begun = tool(brokers, "ReassignPartitionsCommand", "--execute", *how)
    assert "Successfully started partition reassignment for orders-0" in begun
    brokers.until(
        lambda: brokers.partition(1, "orders"), lambda s: s is not None and len(s.isr) == 3
    )
    verified = tool(brokers, "ReassignPartitionsCommand", "--verify", *how)
    assert "Reassignment of partition orders-0 is complete" in verified
    elected = ("--election-type", "preferred", "--topic", "orders", "--partition", 0)
    said = tool(brokers, "LeaderElectionCommand", *elected)
    assert "Successfully completed leader election (PREFERRED) for partitions orders-0" in said
    assert "Leader: 3" in tool(brokers, "TopicCommand", "--describe", "--topic", "orders")


def test_kafka_consumer_groups_lists_describes_and_deletes(brokers: Brokers) -> None:
    brokers.create("grouped", (1, 2))
    offsets = ((TopicPartition("grouped", 0), CommittedOffset(0)),)
    commit = OffsetCommitRequest("g", -1, "", None, offsets)
    brokers.until(lambda: at_coordinator(brokers, commit), lambda error: error is Errors.NONE)
    assert tool(brokers, "ConsumerGroupCommand", "--list").split() == ["g"]
    described = tool(brokers, "ConsumerGroupCommand", "--describe", "--group", "g")
    assert described.splitlines()[-1].split()[:6] == ["g", "grouped", "0", "0", "0", "0"]
    deleted = tool(brokers, "ConsumerGroupCommand", "--delete", "--group", "g")
    assert "Deletion of requested consumer groups ('g') was successful." in deleted
    assert tool(brokers, "ConsumerGroupCommand", "--list").split() == []


def at_coordinator(brokers: Brokers, commit: OffsetCommitRequest) -> Errors:
    """The response to a commit; the first request for a coordinator creates its topic."""
    found = send_request(("127.0.0.1", brokers.ports[1]), FindCoordinatorRequest(commit.group), 20)
    assert isinstance(found, FindCoordinatorResponse)
    if found.error is not Errors.NONE:
        return found.error
    response = send_request((found.host, found.port), commit, 20)
    assert isinstance(response, OffsetCommitResponse)
    return response.partitions[0][1]


def _to(*replicas: int) -> dict[str, object]:
    return {"topic": "orders", "partition": 0, "replicas": replicas}
