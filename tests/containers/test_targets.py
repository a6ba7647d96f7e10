"""Scenarios whose brokers are containers: the same expectations, histories and notifications as in
virtual time, held by the same judge; faults that only an engine can give; nothing stays.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.trace import events
from tests.command import Isr
from tests.containers.conftest import left_by
from tests.containers.playing import agree_literally, performed
from tests.live.agreeing import longer
from tests.sim.shipped_runs import RACE_FREE

pytestmark = pytest.mark.containers

IN_CI = ("shrink-and-expand", "min-isr")

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


@pytest.mark.parametrize(
    "name",
    [n if n in IN_CI else pytest.param(n, marks=pytest.mark.soak) for n in RACE_FREE],
)
def test_a_race_free_one_is_in_containers_what_it_is_in_virtual_time(
    isr: Isr, tmp_path: Path, name: str
) -> None:
    """Literally: who wrote which state, and which notifications; and the judge finds the same."""
    agree_literally(isr, longer(name, tmp_path / name), "containers", tmp_path)
    assert left_by() == []


def test_one_server_of_three_and_a_network_that_is_taken_away(isr: Isr, tmp_path: Path) -> None:
    (tmp_path / "struck.yaml").write_text(STRUCK)
    run = performed(isr, tmp_path / "struck.yaml", "--target", "containers", "--out", tmp_path)
    assert run.code == 0, run.said
    assert run.summary["lost"] == 0
    ends = "closeSession"  # without a request: an expired session
    writes = [e for e in run.of(events.ZkTransaction) if e.broker and e.op != ends]
    assert all(isinstance(run.events[e.cause], events.ZkRequest | events.ZkSent) for e in writes)
    assert left_by() == []
