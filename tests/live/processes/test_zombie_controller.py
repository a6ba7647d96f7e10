"""The controller's process is suspended (SIGSTOP) in the middle of an event for longer than its
session.

Another controller is elected. When the old one resumes, its client (that of 1.0) opens another
session and continues the event's writes. It uses the versions that it knows, and nothing else
prevents its writes. With the fixes of KAFKA-6082 each of its writes also checks its own controller
epoch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from emulator.trace import events
from tests.live.agreeing import LiveRun, isr_run

pytestmark = [pytest.mark.live, pytest.mark.slow]

PARTITIONS = 20
SCENARIO = f"""\
about: controller 3 takes dead broker 2 out of many ISRs, slowly, and stands still meanwhile
profile: "1.0"
cluster:
  brokers: 3
  first: 3
  config:
    replica.lag.time.max.ms: 30000
    zookeeper.session.timeout.ms: 4000
    auto.leader.rebalance.enable: false
topics:
  orders: {{partitions: [{", ".join(["[1, 2]"] * PARTITIONS)}]}}
faults:
  - {{at: 2s, delay_link: {{broker: 3, peer: zookeeper, delay_ms: 150}}, until: 24s}}
  - {{at: 3s, kill: 2}}
  - {{at: 10s, pause: 3, for: 10s}}
run: 30s
"""
OLD = 3
FENCED = ("--guard", "fenced-controller-writes=on", "--guard", "atomic-election=on")


def test_writes_of_a_controller_that_stood_still_go_through_unless_they_are_fenced(
    tmp_path: Path,
) -> None:
    (tmp_path / "zombie.yaml").write_text(SCENARIO)

    def played(name: str, *words: str) -> LiveRun:
        run, out = str(tmp_path / "zombie.yaml"), tmp_path / name
        return isr_run(run, out, "--target", "processes", *words)

    with ThreadPoolExecutor() as pool:
        playing = pool.submit(played, "free"), pool.submit(played, "fenced", *FENCED)
        free, fenced = (one.result() for one in playing)
    for run in (free, fenced):
        assert [e.controller_epoch for e in run.of(events.ControllerElected)] == [1, 2]
        (resigned,) = run.of(events.ControllerResigned)
        assert (resigned.broker, resigned.controller_epoch) == (OLD, 1)
        assert resigned.seq > _elected_next(run)
    assert 0 < len(_written_late(free)) <= PARTITIONS
    assert {epoch for epoch, _ in _written_late(free)} == {1}
    assert _written_late(fenced) == []


def _elected_next(run: LiveRun) -> int:
    return int(run.of(events.ControllerElected)[1].seq)


def _written_late(run: LiveRun) -> list[tuple[int, list[int]]]:
    """(controller epoch, ISR) of each state that the old controller wrote after another was
    elected."""
    late = [e for e in run.of(events.ZkTransaction) if e.seq > _elected_next(run)]
    ops = [op for e in late if e.broker == OLD for op in (e.ops or (e,)) if op.op == "setData"]
    states = [msgspec.json.decode(op.data) for op in ops if str(op.path).endswith("/state")]
    return [(state["controller_epoch"], state["isr"]) for state in states]
