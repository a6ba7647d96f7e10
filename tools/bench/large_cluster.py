"""Large clusters in virtual time: what creating many partitions costs, how fast 20 brokers with
20,000 partitions run at 400 ISR changes per second, and how time and memory grow with idle ones.

Replicas are placed as Kafka places them (AdminUtils.scala@2.6.3 assignReplicasToBrokersRackUnaware,
from the first broker on), so that every broker follows every other one. Each measurement has a
process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace.events import IsrUpdated, MetadataCacheUpdated
from emulator.worlds.emulated_host import nodes_of
from emulator.worlds.gc_tuning import rare_collections
from tools.bench.figures import Figure
from tools.bench.live_cluster import scenario
from tools.bench.many_brokers import resident_kb

BROKERS, PARTITIONS, REPLICATION = 20, 20_000, 3
CHANGES_PER_S = 400
PAUSED_US, PAUSES = 7_000_000, 4
GROWTH = (1_000, 10_000, 100_000)
IDLE_US = 60_000_000
LEAST_FASTER = 5
"""Reached with mypyc; without it 3.9 (ADR 9)."""

CLUSTER = """\
cluster: {{brokers: {brokers}, config: {{replica.lag.time.max.ms: {lag_ms}}}}}
topics: {{first: {{partitions: 1, replication: 1}}}}
run: 1s
"""


def assignment(brokers: int, partitions: int) -> tuple[tuple[int, ...], ...]:
    """The leaders in turn; the followers' distance grows with every round."""
    listed = []
    for partition in range(partitions):
        first, shift = partition % brokers, partition // brokers
        after = (1 + (shift + n) % (brokers - 1) for n in range(REPLICATION - 1))
        listed.append((first + 1, *((first + step) % brokers + 1 for step in after)))
    return tuple(listed)


class Large:
    """A simulated cluster with one topic of many partitions."""

    def __init__(self, brokers: int, partitions: int, lag_ms: int, *, keeps_trace: bool) -> None:
        self.placed = assignment(brokers, partitions)
        text = CLUSTER.format(brokers=brokers, lag_ms=lag_ms)
        self.session = Session(scenario(text), PlayOptions(seed=1), hearing="nothing")
        self.events = self.session.events
        if not keeps_trace:
            self.session.listeners.sink.close()
        self.session.run.bring_up()
        self.kernel, self.cluster = self.session.kernel, self.session.world.cluster

    def create(self) -> None:
        """The topic, until every replica has its role; and ten seconds for all to be quiet."""
        self.cluster.apply(CreateTopic("orders", self.placed, {}))
        replicas = REPLICATION * len(self.placed)
        with_a_role = 0
        while with_a_role < replicas:
            self.pass_us(1_000_000)
            managers = [node.replica_manager for node in nodes_of(self.cluster).values()]
            hosted = (p for m in managers if m is not None for p in m.partitions.values())
            with_a_role = sum(p.leader_replica_id is not None for p in hosted)
        self.pass_us(10_000_000)

    def pass_us(self, us: int) -> None:
        self.kernel.run(self.kernel.now + us)

    def change(self, broker: int, cycle_us: int) -> None:
        """The broker stands still; what it follows gets a record and loses it from the ISR; it
        comes back to every one."""
        followed = tuple(n for n, replicas in enumerate(self.placed) if broker in replicas[1:])
        self.cluster.apply(Pause(broker))
        self.cluster.apply(Send("orders", followed, 1, "1"))
        self.pass_us(PAUSED_US)
        self.cluster.apply(Resume(broker))
        self.pass_us(cycle_us - PAUSED_US)


class Durations(NamedTuple):
    """One span of a run: processor time and virtual time, in seconds."""

    real_s: float
    virtual_s: float
    events: int


def timed(large: Large, do: Callable[[], object]) -> Durations:
    began, at_us, before = time.process_time(), large.kernel.now, len(large.events)
    with rare_collections():
        do()
    took = time.process_time() - began
    return Durations(took, (large.kernel.now - at_us) / 1e6, len(large.events) - before)


# -- changes ---------------------------------------------------------------------------------------


def changes(brokers: int, partitions: int, pauses: int) -> dict[str, object]:
    """In a process of its own: creation, then brokers that stand still one after the other."""
    large = Large(brokers, partitions, 4000, keeps_trace=True)
    created = timed(large, large.create)
    before = len(large.events)
    each = 2 * partitions * (REPLICATION - 1) / brokers
    cycle_us = max(int(each / CHANGES_PER_S * 1e6), PAUSED_US + 1_000_000)

    def pause_one_after_the_other() -> None:
        for broker in range(2, 2 + pauses):
            large.change(broker, cycle_us)

    changed = timed(large, pause_one_after_the_other)
    seen = large.events[before:]
    updates = [e for e in seen if isinstance(e, MetadataCacheUpdated)]
    return {
        "created": created,
        "changed": changed,
        "isr_changes": sum(isinstance(e, IsrUpdated) for e in seen),
        "told": len(updates),
        "named": sum(len(e.states) for e in updates),
    }


def change_figures(
    brokers: int = BROKERS, partitions: int = PARTITIONS, pauses: int = PAUSES
) -> list[Figure]:
    seen = _in_a_process("changes", brokers, partitions, pauses)
    created, changed = Durations(*seen["created"]), Durations(*seen["changed"])
    cluster = f"{brokers} brokers, {partitions:,} partitions × {REPLICATION} replicas"
    rate = seen["isr_changes"] / changed.virtual_s
    return [
        Figure(
            what="creating many partitions",
            value=created.real_s,
            unit="s",
            scope=f"{cluster}, one topic, until every replica has its role and all is quiet; "
            f"{created.virtual_s:.0f} virtual s, {created.events:,} events",
        ),
        Figure(
            what="virtual against real time, many ISR changes",
            value=changed.virtual_s,
            unit="s",
            scope=f"{cluster}, {rate:.0f} ISR changes per virtual second ({pauses} brokers stand "
            f"still for {PAUSED_US / 1e6:g} s one after the other, 1 record to each partition that "
            f"they follow), {changed.events:,} events, nobody listens; {seen['told']} "
            f"metadata_cache_updated name {seen['named']:,} partitions",
            reference="seconds of processor time",
            of=changed.real_s,
            least=LEAST_FASTER,
        ),
    ]


# -- growth ----------------------------------------------------------------------------------------


def growth(brokers: int, partitions: int) -> dict[str, object]:
    """In a process of its own: creation, memory, and a minute in which nothing happens."""
    before_kb = resident_kb()
    large = Large(brokers, partitions, 30_000, keeps_trace=False)
    created = timed(large, large.create)
    grown_kb = resident_kb() - before_kb
    idle = timed(large, lambda: large.pass_us(IDLE_US))
    return {"created": created, "idle": idle, "kb": grown_kb}


def growth_figures(brokers: int = BROKERS, sizes: Sequence[int] = GROWTH) -> list[Figure]:
    figures: list[Figure] = []
    for partitions in sizes:
        seen = _in_a_process("growth", brokers, partitions)
        created, idle = Durations(*seen["created"]), Durations(*seen["idle"])
        scope = f"{brokers} brokers, {partitions:,} partitions × {REPLICATION} replicas"
        figures += [
            Figure(
                what="creating a partition",
                value=created.real_s / partitions * 1000,
                unit="ms",
                scope=f"{scope}, all in one topic; {created.real_s:.1f} s in all",
            ),
            Figure(
                what="virtual against real time, idle",
                value=idle.virtual_s,
                unit="s",
                scope=f"{scope}, nothing is written; {brokers * (brokers - 1)} fetchers go on",
                reference="seconds of processor time",
                of=idle.real_s,
            ),
            Figure(
                what="memory per partition replica",
                value=seen["kb"] / (partitions * REPLICATION),
                unit="KB",
                scope=f"{scope}; resident, the brokers' own part included, no trace",
            ),
        ]
    return figures


def _in_a_process(what: str, *arguments: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tools.bench.large_cluster", what, *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    seen: dict[str, Any] = json.loads(process.stdout)
    return seen


if __name__ == "__main__":
    what, *sizes = sys.argv[1:]
    seen = (changes if what == "changes" else growth)(*map(int, sizes))
    print(msgspec.json.encode(seen).decode())
