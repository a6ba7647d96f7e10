"""Brokers that die, halt, stop and return on a real server, without leftovers.

Separate clusters would take minutes, so one goes through all of it: a leader killed and restarted
too early (its old session still owns its registration), a broker killed while it is paused with its
link to ZooKeeper cut, an orderly stop, an expired session.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator import cli
from emulator.trace.reader import read_events
from tests.live.leftovers import nothing_stays

pytestmark = pytest.mark.live

SCENARIO = """\
about: everything that can happen to a broker's process
cluster:
  brokers: 4
  first: 4
  config:
    replica.lag.time.max.ms: 2000
    zookeeper.session.timeout.ms: 8000
    auto.leader.rebalance.enable: false
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: all, from: 2s, until: 50s}]
faults:
  - {at: 4s, kill: {broker: 1}, for: 3s}
  - {at: 18s, start: {broker: 1}}
  - {at: 22s, cut_zookeeper_link: {broker: 3}, for: 3s}
  - {at: 23s, pause: {broker: 3}}
  - {at: 24s, kill: {broker: 3}, for: 12s}
  - {at: 40s, terminate: {broker: 2}, for: 4s}
  - {at: 46s, expire_session: {broker: 4}}
run: 56s
kernel_late: 1s  # what is expected has margins of seconds; other tests run beside this one
expect:
  - leader of orders-0 goes 1 -> 2 -> 1
  - isr of orders-0 returns to {1, 2, 3}
  - no acknowledged record of orders is lost
  - sessions expired: 3
  - controller moves from 4
"""


def test_everything_that_can_happen_to_a_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "life.yaml"
    file.write_text(SCENARIO)
    with nothing_stays():
        code = cli.execute(
            ["run", str(file), "--time-scale", "4", "--json", "--out", str(tmp_path)]
        )
    told = capsys.readouterr()
    summary: dict[str, Any] = json.loads(told.out)
    assert (code, summary["verdict"]) == (0, "held"), summary["expectations"]
    events = list(read_events(Path(summary["run_directory"]) / "trace.ndjson"))
    failed = [event for event in events if event.kind == "thread_failed"]
    assert [one.broker for one in failed if "NODE_EXISTS for /brokers/ids" in one.error] == [1]
    epochs: dict[int, list[int]] = {}
    for event in events:
        if event.kind == "broker_registered":
            epochs.setdefault(event.broker, []).append(event.broker_epoch)
    assert {broker: len(found) for broker, found in epochs.items()} == {1: 2, 2: 2, 3: 2, 4: 2}
    assert all(found == sorted(set(found)) for found in epochs.values())
