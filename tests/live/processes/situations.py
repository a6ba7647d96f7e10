"""Situations for clients: stale metadata, a leader that moved.

Each lasts as long as a test needs it, whatever the machine's speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from emulator.kafka.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from emulator.trace import events
from emulator.trace.reader import read_events
from emulator.trace.values import PartitionState, TopicPartition
from emulator.worlds.clients.blocking_client import ask_controller, send_request
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.wire.records import filled
from tests.live.processes.cluster import Brokers


def append(brokers: Brokers, topic: str, leader: int) -> int:
    """One record, with acks=1; its offset."""
    data = filled(1, 100, 0)
    wanted = ProducePartition(TopicPartition(topic, 0), 1, len(data), data)
    answer = send_request(
        ("127.0.0.1", brokers.ports[leader]), ProduceRequest(1, 10_000, (wanted,)), 20
    )
    assert isinstance(answer, ProduceResponse)
    assert answer.partitions[0].error.name == "NONE"
    return answer.partitions[0].base_offset


@contextmanager
def nobody_is_told(brokers: Brokers, topic: str) -> Iterator[tuple[int, int, LocalBroker]]:
    """(leader, follower, controller): only the leader is in the ISR. The controller, which would
    inform all brokers, is suspended, and so is the follower. Their sessions must survive that."""
    controller = brokers.controller()
    leader, follower = (n for n in (1, 2, 3) if n != controller)
    brokers.create(topic, (leader, follower))
    _state(brokers, topic, leader, lambda state: state.isr == (leader, follower))
    still = brokers.by_id[controller], brokers.by_id[follower]
    for one in still:
        one.pause()
    try:
        append(brokers, topic, leader)
        brokers.until(lambda: _isr_written(brokers, topic, leader), lambda isr: isr == (leader,))
        yield leader, follower, brokers.by_id[controller]
    finally:
        for one in still:
            one.resume()


def _isr_written(brokers: Brokers, topic: str, leader: int) -> tuple[int, ...]:
    """The last one; empty: none."""
    trace = read_events(brokers.folder / f"broker-{leader}.ndjson")
    of_it = [e for e in trace if isinstance(e, events.IsrUpdated) and e.partition.topic == topic]
    return of_it[-1].isr if of_it else ()


def move_leader(brokers: Brokers, topic: str, old: int, new: int) -> None:
    """Another replica becomes the preferred one, and is elected; no broker stops."""
    partition = TopicPartition(topic, 0)
    servers = [("127.0.0.1", port) for port in brokers.ports.values()]
    turned = AlterPartitionReassignmentsRequest(((partition, (new, old)),))
    assert ask_controller(servers, turned, 30).error.name == "NONE"
    _state(brokers, topic, old, lambda state: state.replicas == (new, old))
    assert ask_controller(servers, ElectLeadersRequest((partition,)), 30).error.name == "NONE"
    for broker in (old, new):
        _state(brokers, topic, broker, lambda state: state.leader == new)


def _state(
    brokers: Brokers, topic: str, asked: int, wanted: Callable[[PartitionState], bool]
) -> None:
    """Wait for it in that broker's metadata."""
    brokers.until(lambda: brokers.partition(asked, topic), lambda s: s is not None and wanted(s))
