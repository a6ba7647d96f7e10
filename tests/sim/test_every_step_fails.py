"""Whichever request of a controller to ZooKeeper fails, and however, the cluster converges."""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec
import pytest

from emulator.invariants.base import Monitor, Violation
from emulator.invariants.known.base import recognise
from emulator.runs.play import PlayOptions, play
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.drop_connection import DropConnection
from emulator.scenario.actions.expire_session import ExpireSession
from emulator.scenario.load import loads
from emulator.scenario.schema import Scenario, Step
from emulator.trace import events as e
from emulator.trace.sink import Sink

BUSY = """\
about: >
  All that a controller does, one after the other; in the middle another takes over. Who has ended
  is started at last, twice, since a broker whose session expires while it starts ends again.
cluster:
  brokers: 3
  first: 3
  config:
    zookeeper.session.timeout.ms: 3000
    replica.lag.time.max.ms: 1500
    controlled.shutdown.retry.backoff.ms: 500
topics:
  orders: {partitions: [[1, 2, 3], [2, 3, 1]]}
  bills: {partitions: [[3, 1]]}
workload:
  - {produce: orders, rate: 2, acks: all, from: 1s, until: 30s}
faults:
  - {at: 2s, add_partitions: {topic: bills, assignment: [[1, 2]]}}
  - {at: 3s, reassign: {topic: bills, partition: 0, replicas: [1, 2]}}
  - {at: 5s, fail_log_dir: {broker: 2}, for: 2s}
  - {at: 8s, terminate: {broker: 1}}
  - {at: 13s, start: {broker: 1}}
  - {at: 17s, preferred_election: {partitions: [orders-0], through: znode}}
  - {at: 19s, pause: {broker: 2}, for: 2s}
  - {at: 22s, kill: {broker: 3}}
  - {at: 29s, start: {broker: 3}}
  - {at: 33s, delete_topic: {topic: bills}}
  - {at: 100s, start: {broker: 1, if_down: true}}
  - {at: 100s, start: {broker: 2, if_down: true}}
  - {at: 100s, start: {broker: 3, if_down: true}}
  - {at: 120s, start: {broker: 1, if_down: true}}
  - {at: 120s, start: {broker: 2, if_down: true}}
  - {at: 120s, start: {broker: 3, if_down: true}}
run: 180s
"""
SEED = 5
STRIDE = 47
How = Literal["before", "after", "expired"]
HOW: tuple[How, ...] = ("before", "after", "expired")
"""The connection breaks before the server has the request, or after; or the session ends."""


def fault(broker: int, how: How) -> Action:
    if how == "expired":
        return ExpireSession(broker)
    return DropConnection(broker, how)


def played(scenario: Scenario) -> tuple[Sink, list[Violation]]:
    """The trace, and what is wrong that Kafka itself would not get wrong."""
    sink, monitor = Sink(), Monitor(liveness=True)
    sink.listen(monitor)
    play(scenario, PlayOptions(seed=SEED), sink)
    return sink, [one for one in monitor.at_end() if not recognise(one, sink.events)]


@cache
def undisturbed() -> tuple[Scenario, list[e.ZkSent], int]:
    """The scenario, what its controllers ask of ZooKeeper, and when the cluster was up."""
    scenario = loads(BUSY, "busy")
    sink, wrong = played(scenario)
    assert wrong == []
    up_us = next(
        one.t for one in sink.events if isinstance(one, e.ActionApplied) and one.do == "up"
    )
    asked = [
        one
        for one in sink.events
        if isinstance(one, e.ZkSent) and one.thread == "controller-event-thread" and one.t > up_us
    ]
    return scenario, asked, up_us


def with_step(scenario: Scenario, at_us: int, action: Action) -> Scenario:
    steps = sorted([*scenario.steps, Step(at_us, action)], key=lambda step: step.at_us)
    return msgspec.structs.replace(scenario, steps=tuple(steps))


def failures(requests: list[e.ZkSent], how: How) -> list[tuple[e.ZkSent, list[Violation]]]:
    """The failures of plays in which one request each meets its fault."""
    scenario, _, up_us = undisturbed()
    found = []
    for request in requests:
        at_us = request.t - up_us - 1
        _, wrong = played(with_step(scenario, at_us, fault(request.broker, how)))
        if wrong:
            found.append((request, wrong))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_a_few_requests_of_a_controller_fail(how: How) -> None:
    _, asked, _ = undisturbed()
    assert failures(asked[::STRIDE], how) == []


@pytest.mark.soak
@pytest.mark.parametrize("how", HOW)
def test_every_request_of_a_controller_fails(how: How) -> None:
    _, asked, _ = undisturbed()
    assert failures(asked, how) == []


def test_controllers_ask_for_all_that_they_ever_ask() -> None:
    """Else the sentences above would say less than they seem to."""
    _, asked, _ = undisturbed()
    assert {one.broker for one in asked} >= {1, 3}
    assert {one.op for one in asked} >= {"exists", "getData", "getChildren2"}
    written = {one.path.split("/")[1] for one in asked if one.op.startswith("multi")}
    assert written >= {"brokers", "admin", "controller_epoch", "isr_change_notification"}
    assert "/log_dir_event_notification" in {one.path for one in asked}
