"""A scenario whose `hosts` mix emulated brokers and real Kafka: one run, one trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.trace import events
from emulator.trace.reader import read_events
from tests.command import Isr
from tests.live.agreeing import PLAYS, UNKNOWN
from tests.live.leftovers import nothing_stays

pytestmark = pytest.mark.kafka

SCENARIO = """\
about: real Kafka leads one partition and follows in the other
cluster: {first: 1, config: {zookeeper.session.timeout.ms: 9000, replica.lag.time.max.ms: 3000}}
hosts: {1: process, 3: kafka 2.6.3}
topics: {orders: {partitions: [[3, 1, 2], [1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: all, from: 2s, until: 20s}]
faults:
  - {at: 4s, pause: {broker: 2}, for: 5s}
  - {at: 13s, cut_link: {broker: 3, peer: 1}, for: 5s}
  - {at: 21s, kill: {broker: 3}}
run: 33s
expect:
  - isr of orders-0 becomes [3, 1] between 6s and 11s
  - isr of orders-0 becomes [3, 2] between 15s and 19s
  - isr of orders-1 becomes [1, 2] between 15s and 19s
"""
REAL = 3


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


def test_real_kafka_is_a_host_of_a_scenario(isr: Isr, tmp_path: Path) -> None:
    """It is paused, cut off and killed beside emulated brokers; its decisions are in the trace, and
    they are the consequences of what was done."""
    (tmp_path / "mixed.yaml").write_text(SCENARIO)
    for _ in range(PLAYS):
        with nothing_stays():
            code, out, err = isr("run", tmp_path / "mixed.yaml", "--json", "--out", tmp_path)
        if code != UNKNOWN:
            break
    summary = json.loads(out)
    assert code == 0, (summary, err)
    trace = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    assert [e.seq for e in trace] == list(range(len(trace)))
    assert [e.t for e in trace] == sorted(e.t for e in trace)
    real = [e for e in trace if e.broker == REAL]
    starting = [e.profile for e in real if isinstance(e, events.BrokerStarting)]
    assert starting == ["2.6"]
    states = [e.state for e in real if isinstance(e, events.ProcessStateChanged)]
    assert states == ["starting", "up", "dead"]
    # What it decided, from its log, led to what ZooKeeper applied, through what passed its tap.
    shrinks = [e for e in real if isinstance(e, events.IsrUpdateStarted) and e.change == "shrink"]
    assert [e.to_isr for e in shrinks if str(e.partition) == "orders-0"] == [(3, 1), (3, 2)]
    written = [e for e in real if isinstance(e, events.ZkTransaction) and e.op == "setData"]
    assert written
    assert all(isinstance(trace[e.cause], events.ZkRequest) for e in written)
    # Emulated brokers followed it and were followed by it.
    followers = {
        (str(e.partition), e.broker) for e in trace if isinstance(e, events.BecomesFollower)
    }
    assert {("orders-0", 1), ("orders-0", 2), ("orders-1", REAL)} <= followers


def test_what_real_kafka_cannot_be_given_is_refused_before_anything_starts(
    isr: Isr, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text(SCENARIO.replace("kill: {", "fail_log_dir: {"))
    code, line = isr.fails("run", tmp_path / "bad.yaml", "--out", tmp_path / "runs")
    assert code == 64
    assert "fail_log_dir at 21 s cannot be given to brokers that are processes" in line
    assert not (tmp_path / "runs").exists()
