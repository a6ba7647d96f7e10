"""Many emulated brokers in one process against one real ZooKeeper server.

As many partitions as brokers, replication factor 3, in a ring: each broker leads one partition and
follows two. They start; each leader loses the link to its first follower, and takes it out of the
ISR; they stop. No session may be lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from emulator.trace.events import AnyEvent, IsrUpdated, ThreadFailed, ZkSessionState
from tools.bench.figures import Figure
from tools.bench.live_cluster import LiveCluster, live_cluster

BROKERS = 100
LATE_MS = 2_000
"""What a kernel may be late before a fetcher or a session would notice."""

RING = """\
cluster:
  brokers: {brokers}
  config: {{replica.lag.time.max.ms: 4000, auto.leader.rebalance.enable: false}}
topics: {{ring: {{partitions: [{partitions}]}}}}
workload:
  - {{send: ring, records: 1, acks: 1, at: 1s}}
faults:
{faults}
run: 1min
"""


class Seen(NamedTuple):
    """What came of it."""

    start_s: float
    changes_s: float
    stop_s: float
    kb_per_broker: float
    late_ms: float
    events: list[AnyEvent]
    partitions_changed: int
    sessions_lost: int

    def figures(self, brokers: int) -> list[Figure]:
        scope = f"{brokers} brokers in one process, {brokers} partitions × 3 replicas, in a ring"
        changes = f"{self.partitions_changed} partitions, one ISR change each; {scope}"
        return [
            Figure(what="many brokers: start", value=self.start_s, unit="s", scope=scope),
            Figure(what="many brokers: changes", value=self.changes_s, unit="s", scope=changes),
            Figure(what="many brokers: stop", value=self.stop_s, unit="s", scope=scope),
            Figure(
                what="memory per broker",
                value=self.kb_per_broker / 1024,
                unit="MB",
                scope=f"resident, when all are up; session, tap and its threads included; {scope}",
            ),
            Figure(
                what="kernel_late_ms_max",
                value=self.late_ms,
                unit="ms",
                scope=f"from the first boot to the end; {scope}",
                most=LATE_MS,
            ),
            Figure(
                what="sessions lost", value=self.sessions_lost, unit="", scope=scope, most=0
            ),
        ]  # fmt: skip


def ring(brokers: int) -> str:
    ids = range(1, brokers + 1)
    after = {broker: broker % brokers + 1 for broker in ids}
    partitions = ", ".join(f"[{b}, {after[b]}, {after[after[b]]}]" for b in ids)
    faults = "\n".join(
        f"  - {{at: 500ms, cut_link: {{broker: {b}, peer: {after[b]}}}}}" for b in ids
    )
    return RING.format(brokers=brokers, partitions=partitions, faults=faults)


def play(brokers: int = BROKERS) -> Seen:
    """Start, change, stop."""
    before_kb = resident_kb()
    began = time.monotonic()
    with live_cluster(ring(brokers)) as cluster:
        start_s, up_kb = time.monotonic() - began, resident_kb()
        changes_s = _change(cluster, brokers)
        events, late_us = cluster.sink.events, cluster.kernel.late_us_max
        stopping = time.monotonic()
    return Seen(
        start_s,
        changes_s,
        time.monotonic() - stopping,
        (up_kb - before_kb) / brokers,
        late_us / 1000,
        events,
        len({event.partition for event in events if isinstance(event, IsrUpdated)}),
        sum(_lost(events)),
    )


def _change(cluster: LiveCluster, brokers: int) -> float:
    """The topic, the cuts, one record each; until each leader has changed its ISR."""
    cluster.apply_due(1)
    cluster.until(lambda: all(cluster.partitions_led(b) for b in range(1, brokers + 1)))
    began = time.monotonic()
    cluster.apply_due(brokers + 1)
    cluster.until(lambda: cluster.count[IsrUpdated] >= brokers)
    return time.monotonic() - began


def _lost(events: Iterable[AnyEvent]) -> Iterable[bool]:
    """A session that expired or was disconnected, or a thread that failed."""
    for event in events:
        yield isinstance(event, ThreadFailed)
        yield isinstance(event, ZkSessionState) and event.state != "SyncConnected"


def resident_kb() -> int:
    """Of this process."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)


def figures(brokers: int = BROKERS) -> list[Figure]:
    return play(brokers).figures(brokers)
