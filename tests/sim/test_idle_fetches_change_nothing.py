"""Optimised idle fetches give the same trace as if every fetch read every partition of its session,
as in Kafka."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from emulator.kafka.broker.fetcher_thread import ReplicaFetcherThread
from emulator.kafka.broker.idle_fetches import IdleFetches
from emulator.kafka.broker.partition import Partition
from emulator.runs.play import Run
from emulator.scenario.load import loads
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld

CLUSTER = """\
cluster: {brokers: 4, config: {replica.lag.time.max.ms: 3000, replica.fetch.min.bytes: %d}}
topics: {orders: {partitions: 12, replication: 3}}
workload:
  - {produce: orders, rate: 0.5, acks: all, from: 2s, until: 26s}
  - {produce: orders, partitions: [0, 1], rate: 20, acks: 1, from: 3s, until: 20s}
faults:
%s
run: 30s
"""
FAULTS = {
    "a pause": "- {at: 6s, pause: {broker: 2}, for: 6s}",
    "a slow disk": "- {at: 6s, slow_disk: {broker: 2, ms_per_append: 200}, for: 6s}",
    "a crash": "- {at: 6s, kill: {broker: 2}}\n- {at: 15s, start: {broker: 2}}",
    "a stop": "- {at: 6s, terminate: {broker: 1}}\n- {at: 15s, start: {broker: 1}}",
    "a cut": "- {at: 6s, cut_link: {broker: 2, peer: 3}, for: 6s}",
    "no ZooKeeper": "- {at: 6s, cut_zookeeper_link: {broker: 1}, for: 5s}",
}


def trace(faults: str, seed: int, min_bytes: int) -> list[Any]:
    sink = Sink()
    scenario = loads(CLUSTER % (min_bytes, faults), "idle")
    with closing(SimulatedWorld(scenario, seed, sink)) as world:
        Run(world).play()
    return sink.events


def never_idle(self: IdleFetches, *_: object) -> None:
    """Every partition stays awake."""


_build_fetch = ReplicaFetcherThread._build_fetch


def look_at_all(self: ReplicaFetcherThread) -> object:
    self.partitions.has_other_changes = True
    return _build_fetch(self)


@pytest.mark.parametrize("min_bytes", [1, 500])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_trace_is_the_same(fault: str, min_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = trace(FAULTS[fault], 7, min_bytes)
    monkeypatch.setattr(IdleFetches, "idle", never_idle)
    monkeypatch.setattr(ReplicaFetcherThread, "_build_fetch", look_at_all)
    assert trace(FAULTS[fault], 7, min_bytes) == quick


def test_an_idle_cluster_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Partition] = []
    reads = Partition.read_records

    def counted(self: Partition, *args: Any, **kwargs: Any) -> Any:
        read.append(self)
        return reads(self, *args, **kwargs)

    sink = Sink()
    text = "cluster: {brokers: 3}\ntopics: {orders: {partitions: 20, replication: 3}}\nrun: 20s\n"
    with closing(SimulatedWorld(loads(text, "idle"), 1, sink)) as world:
        run = Run(world)
        run.play()
        monkeypatch.setattr(Partition, "read_records", counted)
        before = sum(isinstance(e, events.FetchSent) for e in sink.events)
        run.run_to(40_000_000)
    fetches = sum(isinstance(e, events.FetchSent) for e in sink.events) - before
    assert (fetches > 200, read) == (True, [])
