"""A leader that asks the controller, on a real ZooKeeper server: what is written, and who knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import load
from emulator.trace import events
from emulator.trace.sink import Sink

pytestmark = pytest.mark.live

SHORT = """
about: A follower stands still, leaves, and comes back.
profile: "2.7"
cluster:
  brokers: 3
  first: 3
  config: {replica.lag.time.max.ms: 600, replica.fetch.backoff.ms: 200}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload:
  - {produce: orders, rate: 20, acks: 1, from: 500ms, until: 3500ms}
faults:
  - {at: 1s, pause: {broker: 2}, for: 1500ms}
run: 4s
"""


def test_a_shrink_and_an_expand_are_written_by_the_controller_and_shown_by_all(
    tmp_path: Path,
) -> None:
    file, sink = tmp_path / "short.yaml", Sink()
    file.write_text(SHORT)
    play(load(file), PlayOptions(seed=1, zookeeper="embedded", data_dir=tmp_path / "data"), sink)
    changed = [e for e in sink.events if isinstance(e, events.IsrUpdated)]
    assert [e.isr for e in changed] == [(1, 3), (1, 3, 2)]
    writers = {
        e.broker
        for e in sink.events
        if isinstance(e, events.ZkTransaction)
        for op in e.ops
        if op.op == "setData" and (op.path or "").endswith("/partitions/0/state")
    }
    assert writers == {3}
    shown = {
        (e.broker, state.zk_version)
        for e in sink.events
        if isinstance(e, events.MetadataCacheUpdated)
        for state in e.states
    }
    assert {(1, 1), (3, 1), (1, 2), (2, 2), (3, 2)} <= shown
    assert not [e for e in sink.events if isinstance(e, events.IsrChangeNotified)]
