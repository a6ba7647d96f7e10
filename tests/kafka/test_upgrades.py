"""Rolling upgrades 2.6 → 2.7 → 2.8 in mixed clusters: of real brokers under our controller, and of
ours under a real one. The inter-broker protocol stays 2.6 meanwhile, as Kafka's notes ask."""

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
about: brokers 1 and 2 are upgraded one after the other, twice; broker 3 is the controller
profile: "2.6"
cluster:
  brokers: 3
  first: 3
  config:
    replica.lag.time.max.ms: 3000
    zookeeper.session.timeout.ms: 12000
    auto.leader.rebalance.enable: false
hosts: {hosts}
topics: {orders: {partitions: [[1, 2, 3], [2, 1, 3]]}}
workload: [{produce: orders, rate: 5, acks: all, from: 2s, until: 78s}]
faults:
  - {at: 4s, terminate: {broker: 1}}
  - {at: 9s, start: {broker: 1, profile: "2.7", propagation: zk}}
  - {at: 22s, terminate: {broker: 2}}
  - {at: 27s, start: {broker: 2, profile: "2.7", propagation: zk}}
  - {at: 40s, terminate: {broker: 1}}
  - {at: 45s, start: {broker: 1, profile: "2.8", propagation: zk}}
  - {at: 58s, terminate: {broker: 2}}
  - {at: 63s, start: {broker: 2, profile: "2.8", propagation: zk}}
run: 82s
kernel_late: 2s
expect:
  - leader of orders-0 goes 1 -> 2 -> 1 -> 2 -> 1
  - leader of orders-1 goes 2 -> 1 -> 2 -> 1
  - isr of orders-0 at end is {1, 2, 3}
  - isr of orders-1 at end is {1, 2, 3}
"""


@pytest.fixture
def isr(capsys: pytest.CaptureFixture[str]) -> Isr:
    return Isr(capsys)


@pytest.mark.parametrize(
    "hosts",
    ["{1: kafka 2.6.3, 2: kafka 2.6.3}", "{3: kafka 2.6.3}"],
    ids=["real brokers under our controller", "our brokers under a real controller"],
)
def test_a_rolling_upgrade_of_a_mixed_cluster(isr: Isr, tmp_path: Path, hosts: str) -> None:
    (tmp_path / "upgrade.yaml").write_text(SCENARIO.replace("{hosts}", hosts))
    for _ in range(PLAYS):
        with nothing_stays():
            code, out, err = isr("run", tmp_path / "upgrade.yaml", "--json", "--out", tmp_path)
        if code != UNKNOWN:
            break
    summary = json.loads(out)
    assert code == 0, (summary, err)
    trace = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    starting = [(e.broker, e.profile) for e in trace if isinstance(e, events.BrokerStarting)]
    assert [one for one in starting if one[0] == 1] == [(1, "2.6"), (1, "2.7"), (1, "2.8")]
    assert [one for one in starting if one[0] == 2] == [(2, "2.6"), (2, "2.7"), (2, "2.8")]
    results = [e for e in trace if isinstance(e, events.RecordsProduced)]
    assert {e.result for e in results} == {"ok"}
