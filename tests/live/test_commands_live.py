"""Commands through znodes and a log directory that fails, in both worlds: on a real server the
command is written by a session of no broker, past every broker's tap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.trace import events
from tests.live.agreeing import isr_run

STORY = """\
about: a partition moves by a command znode, leadership goes back by another, a directory fails
cluster:
  first: 1
  config: {replica.lag.time.max.ms: 2000, log.dirs: "/a,/b"}
topics: {orders: {partitions: [[1, 2]]}}
workload: [{produce: orders, rate: 20, acks: 1, from: 1s, until: 9s}]
faults:
  - {at: 2s, reassign: {topic: orders, partition: 0, replicas: [3, 2], through: znode}}
  - {at: 5s, preferred_election: {through: znode}}
  - {at: 6s, fail_log_dir: {broker: 2, directory: 0}}
run: 10s
expect: ["isr of orders-0 goes [1, 2] -> [1, 2, 3] -> [2, 3] -> [3]"]
"""


@pytest.mark.parametrize(
    "zookeeper", ["simulated", pytest.param("embedded", marks=pytest.mark.live)]
)
def test_commands_are_carried_out_and_their_znodes_go(zookeeper: str, tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(STORY)
    words = ["--zookeeper", zookeeper, "--seed", "1"]
    run = isr_run(str(tmp_path / "story.yaml"), tmp_path / "runs", *words)
    assert run.code == 0, run.said
    told = run.events
    ops = [
        (op.op, op.path)
        for e in told
        if isinstance(e, events.ZkTransaction)
        for op in (e.ops or (e,))
        if (op.path or "").startswith(("/admin/r", "/admin/p", "/log_dir_event_notification/"))
    ]
    written = [(op, path.rpartition("/")[2][:22]) for op, path in ops if path]
    assert written == [
        ("create", "reassign_partitions"),
        ("delete", "reassign_partitions"),
        ("create", "preferred_replica_elec"),
        ("delete", "preferred_replica_elec"),
        ("create", "log_dir_event_00000000"),
        ("delete", "log_dir_event_00000000"),
    ]
    failures = [e for e in told if isinstance(e, events.ThreadFailed)]
    assert not failures, json.dumps([e.what for e in failures])
