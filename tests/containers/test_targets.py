"""Scenarios whose brokers are containers: the same expectations, histories and notifications as in
virtual time, held by the same judge; faults that only an engine can give; nothing stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.conformance.compare import judge
from emulator.trace import events
from emulator.trace.reader import read_events
from tests.command import Isr
from tests.containers.conftest import left_by
from tests.live.agreeing import LiveRun, simulated, written
from tests.sim.shipped_runs import RACE_FREE

pytestmark = pytest.mark.containers

IN_CI = ("shrink-and-expand", "min-isr")
SEEDS = range(3)
STATES, NOTIFICATIONS, DECISIONS = 1, 2, 5
PLAYS = 4
"""On a busy machine a play may be too late to tell, or meet what no seed draws."""

STRUCK = """\
about: servers of an ensemble stand still and die, one at a time; a broker loses its network
cluster:
  first: 1
  zookeeper: {servers: 3}
  config: {replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 6000}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: all, from: 1s, until: 24s}]
faults:
  - {at: 2s, pause: {server: zookeeper-1}, for: 3s}
  - {at: 7s, stop_zookeeper: {server: zookeeper-2}, for: 4s}
  - {at: 15s, unplug: {broker: 2}, for: 6s}
run: 60s
expect:
  - isr of orders-0 becomes [1, 3] between 15s and 24s
  - the cluster converges
"""


def performed(isr: Isr, *words: Any, agrees: Callable[[LiveRun], bool] = lambda _: True) -> LiveRun:
    """A run, played again where the machine was too busy."""
    for _ in range(PLAYS):
        code, out, err = isr("run", *words, "--json")
        assert out, err
        summary = json.loads(out)
        directory = Path(summary["run_directory"])
        told = list(read_events(directory / "trace.ndjson"))
        run = LiveRun(code, err, summary, directory, told, str(words[0]))
        if code == 0 and agrees(run):
            break
    return run


@pytest.mark.parametrize(
    "name",
    [n if n in IN_CI else pytest.param(n, marks=pytest.mark.soak) for n in RACE_FREE],
)
def test_a_race_free_one_is_in_containers_what_it_is_in_virtual_time(
    isr: Isr, tmp_path: Path, name: str
) -> None:
    """Literally: who wrote which state, and which notifications; and the judge finds the same."""
    simulations = [simulated(name, seed) for seed in SEEDS]
    virtual = [written(one) for one in simulations]

    def agrees(run: LiveRun) -> bool:
        return virtual == [written(run.recording)] * len(SEEDS)

    run = performed(isr, name, "--target", "containers", "--out", tmp_path, agrees=agrees)
    assert run.code == 0, (run.summary, run.said)
    assert virtual == [written(run.recording)] * len(SEEDS)
    nearest = judge(run.recording, simulations).nearest_differences
    points = (STATES, NOTIFICATIONS, DECISIONS)
    assert {point: nearest[point] for point in points} == dict.fromkeys(points)
    assert left_by() == []


def test_one_server_of_three_and_a_network_that_is_taken_away(isr: Isr, tmp_path: Path) -> None:
    (tmp_path / "struck.yaml").write_text(STRUCK)
    run = performed(isr, tmp_path / "struck.yaml", "--target", "containers", "--out", tmp_path)
    assert run.code == 0, (run.summary, run.said)
    assert run.summary["lost"] == 0
    ends = "closeSession"  # nobody may have asked for that: a session that ran out
    writes = [e for e in run.of(events.ZkTransaction) if e.broker and e.op != ends]
    assert all(isinstance(run.events[e.cause], events.ZkRequest | events.ZkSent) for e in writes)
    assert left_by() == []
