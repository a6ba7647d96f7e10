"""Manual operations on a cluster that has other problems."""

from __future__ import annotations

from contextlib import closing
from typing import Any, TypeVar

import msgspec
import pytest

from emulator.runs.play import Run
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld
from zk.errors import Code

CLUSTER = """\
cluster: {{brokers: 3, first: 3, config: {{zookeeper.session.timeout.ms: 6000}}}}
topics: {{orders: {{partitions: [[1, 2, 3]]}}}}
faults:
{faults}
run: 60s
"""
E = TypeVar("E")


def played(*faults: str, remembers_controller: bool = False) -> list[Any]:
    text = CLUSTER.format(faults="\n".join(f"  - {fault}" for fault in faults))
    sink = Sink()
    scenario = msgspec.structs.replace(
        loads(text, "operator"), remembers_controller=remembers_controller
    )
    with closing(SimulatedWorld(scenario, 1, sink)) as world:
        Run(world).play()
    return sink.events


def of(kind: type[E], trace: list[Any]) -> list[E]:
    return [event for event in trace if isinstance(event, kind)]


def results_of(trace: list[Any]) -> list[tuple[str, str]]:
    """The results of commands, in order."""
    named = {event.seq: event.do for event in of(e.ActionApplied, trace)}
    return [(named[event.of], event.result) for event in of(e.ActionReturned, trace)]


def test_a_deleted_controller_node_is_an_election_of_the_next_epoch() -> None:
    trace = played("{at: 5s, delete_controller: }")
    assert [event.controller_epoch for event in of(e.ControllerElected, trace)] == [1, 2]
    assert [
        (event.broker, event.controller_epoch) for event in of(e.ControllerResigned, trace)
    ] == [(3, 1)]
    assert [event.result for event in of(e.ActionReturned, trace)][-1] == "NONE"


def test_zookeepers_shell_does_not_wait_for_a_server_that_is_down() -> None:
    """Its first connection is refused. Kafka's own tools wait."""
    down = "{at: 4s, stop_zookeeper: {server: zookeeper}, for: 6s}"
    trace = played(
        down,
        "{at: 5s, delete_controller: }",
        "{at: 6s, reassign: {topic: orders, partition: 0, replicas: [2, 1, 3], through: znode}}",
    )
    answers = dict(results_of(trace))
    assert answers["delete_controller"] == "CONNECTION_LOSS"
    assert answers["reassign"] == "NONE"
    assert [event.controller_epoch for event in of(e.ControllerElected, trace)] == [1]


def test_zookeeper_refuses_a_controller_that_has_not_heard_yet() -> None:
    """Its session lives and its epoch is over: the check of /controller_epoch fails, and it
    resigns in the middle of a topic's creation; the next controller creates it."""
    trace = played(
        "{at: 5s, delay_link: {broker: 3, peer: zookeeper, delay_ms: 400}, for: 20s}",
        "{at: 6s, create_topic: {topic: bills, assignment: [[1, 2]]}}",
        "{at: 10200ms, delete_controller: }",
    )
    refused = [r for r in of(e.ZkReply, trace) if r.broker == 3 and r.code == Code.BAD_VERSION]
    assert {reply.op for reply in refused} == {"multi/create"}
    elected = of(e.ControllerElected, trace)[1]
    assert elected.broker != 3
    resigned = of(e.ControllerResigned, trace)[0]
    assert (resigned.broker, resigned.seq > refused[0].seq > elected.seq) == (3, True)
    leaders = [event for event in of(e.BecomesLeader, trace) if event.partition.topic == "bills"]
    assert [event.broker for event in leaders] == [1]


ELECTION = "{at: 5s, delete_controller: }"
DEATH = "{at: 5s, kill: {broker: 3}, for: 20s}"


@pytest.mark.parametrize("ended", [ELECTION, DEATH])
def test_a_command_finds_the_new_controller(ended: str) -> None:
    trace = played(ended, "{at: 15s, create_topic: {topic: bills, assignment: [[1, 2]]}}")
    assert [event.broker for event in of(e.ControllerElected, trace)][-1] != 3
    assert results_of(trace)[-1] == ("create_topic", "NONE")


@pytest.mark.parametrize(("ended", "from_s", "to_s"), [(ELECTION, 0, 0.1), (DEATH, 10, 13)])
def test_the_client_of_older_recordings_remembers_a_former_controller(
    ended: str, from_s: float, to_s: float
) -> None:
    """It waits for a dead one, and does not repeat what it has refused (random scripts 135, 159,
    204, 205, 209, 221)."""
    trace = played(
        ended,
        "{at: 15s, create_topic: {topic: bills, assignment: [[1, 2]]}}",
        remembers_controller=True,
    )
    assert [event.broker for event in of(e.ControllerElected, trace)][-1] != 3
    answer = of(e.ActionReturned, trace)[-1]
    assert answer.result == "NOT_CONTROLLER"
    (created,) = (event for event in of(e.ActionApplied, trace) if event.seq == answer.of)
    assert from_s <= (answer.t - created.t) / 1e6 <= to_s
    assert {event.partition.topic for event in of(e.BecomesLeader, trace)} == {"orders"}


def test_the_client_of_older_recordings_makes_some_commands_from_metadata() -> None:
    trace = played(
        ELECTION,
        "{at: 7s, add_partitions: {topic: orders, assignment: [[2, 3, 1]]}}",
        "{at: 8s, create_topic: {topic: bills, assignment: [[1, 2]]}}",
        remembers_controller=True,
    )
    assert [event.broker for event in of(e.ControllerElected, trace)][-1] != 3
    results = results_of(trace)
    assert results[-2:] == [("add_partitions", "NONE"), ("create_topic", "NONE")]


def test_a_broker_that_is_down_is_asked_again_until_it_answers() -> None:
    trace = played(
        "{at: 5s, kill: {broker: 2}, for: 10s}",
        '{at: 6s, broker_config: {broker: 2, config: {follower.replication.throttled.rate: "9"}}}',
    )
    asked = next(event for event in of(e.ActionApplied, trace) if event.do == "broker_config")
    answer = next(event for event in of(e.ActionReturned, trace) if event.of == asked.seq)
    assert (answer.result, answer.t - asked.t > 9_000_000) == ("NONE", True)


def test_a_quota_that_ends_is_no_limit_again() -> None:
    rate = 'config: {leader.replication.throttled.rate: "9"}'
    trace = played(f"{{at: 5s, broker_config: {{broker: 2, {rate}}}, for: 10s}}")
    written = [
        event.data
        for event in of(e.ZkTransaction, trace)
        if event.path == "/config/brokers/2" and event.op in ("create", "setData")
    ]
    assert ['"9"' in str(data) for data in written] == [True, False]
    assert str((1 << 63) - 1) in str(written[-1])
