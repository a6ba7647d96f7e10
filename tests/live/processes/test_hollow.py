"""Hollow brokers: many in one process, each with its own port, session, life and end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.trace import events
from emulator.trace.reader import read_events
from tests.command import Isr
from tests.live.agreeing import PLAYS, UNKNOWN
from tests.live.leftovers import nothing_stays

pytestmark = [pytest.mark.live, pytest.mark.slow]

SCENARIO = """\
about: brokers of one process follow, lead, are paused, killed and stopped one by one
cluster:
  brokers: 6
  first: 1
  config: {zookeeper.session.timeout.ms: 6000, replica.lag.time.max.ms: 3000}
hosts: {2: hollow, 3: hollow, 4: hollow, 5: hollow, 6: hollow}
topics: {orders: {partitions: [[2, 3, 4], [5, 6, 2]]}}
workload: [{produce: orders, rate: 20, acks: all, from: 2s, until: 20s}]
faults:
  - {at: 4s, pause: {broker: 3}, for: 5s}
  - {at: 11s, kill: {broker: 5}, for: 9s}
  - {at: 14s, terminate: {broker: 4}, for: 3s}
run: 28s
expect:
  - isr of orders-0 becomes [2, 4] between 6s and 9s
  - leader of orders-1 goes 5 -> 6
  - isr of orders-1 at end is {2, 5, 6}
  - isr of orders-0 at end is {2, 3, 4}
"""


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


def test_each_of_them_is_a_broker(isr: Isr, tmp_path: Path) -> None:
    """What is done to one is not done to the others; who was killed finds its log again."""
    (tmp_path / "hollow.yaml").write_text(SCENARIO)
    for _ in range(PLAYS):
        with nothing_stays():
            code, out, err = isr("run", tmp_path / "hollow.yaml", "--json", "--out", tmp_path)
        if code != UNKNOWN:
            break
    assert out, err
    summary = json.loads(out)
    assert code == 0, (summary, err)
    run = Path(summary["run_directory"])
    trace = list(read_events(run / "trace.ndjson"))
    states = [(e.broker, e.state) for e in trace if isinstance(e, events.ProcessStateChanged)]
    hollow = [one for one in states if one[0] > 1]
    assert hollow == [(3, "paused"), (3, "up"), (5, "dead")]
    # They write no trace; ZooKeeper's log has whose transactions they are.
    writers = {e.broker for e in trace if isinstance(e, events.ZkTransaction) and e.op == "setData"}
    assert {2, 6} <= writers
    assert not list((run / "processes").glob("broker-[2-6].ndjson"))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("cut_link: {broker: 2, peer: 1}", "cut is not supported for hollow brokers"),
        ("cut_zookeeper_link: 3", "cut is not supported for hollow brokers"),
        ("expire_session: 3", "broker 3 is hollow: its session passes no proxy"),
        ("crash: {broker: 3, lose: disk}", "lose from disk is not supported for hollow brokers"),
    ],
)
def test_what_needs_a_proxy_or_a_disk_of_its_own_is_refused(
    isr: Isr, tmp_path: Path, fault: str, reason: str
) -> None:
    text = SCENARIO.replace("pause: {broker: 3}, for: 5s", fault)
    (tmp_path / "refused.yaml").write_text(text)
    code, line = isr.fails("run", tmp_path / "refused.yaml", "--out", tmp_path / "runs")
    assert code == 64
    assert reason in line
    assert not (tmp_path / "runs").exists()
