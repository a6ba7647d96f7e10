"""The simulated world: how many traced events per second, how much faster than the clock, and what
a partition replica takes of memory.

Held against a heap of call-backs that do nothing, popped one by one in the same run: what any
discrete-event simulation in this language pays before it does anything.
"""

from __future__ import annotations

import heapq
import subprocess
import sys
import time

from emulator.runtime.play import Run
from emulator.runtime.simulated import SimulatedWorld
from emulator.trace.sink import Sink
from tests.bench.figures import Figure
from tests.bench.live_cluster import scenario
from tests.bench.many_brokers import resident_kb

CALLBACKS = 300_000
PENDING = 1_000
PARTITIONS, RATE, VIRTUAL_S = 30, 10, 60
FEW, MANY = 300, 3_000

RUN = """\
cluster: {{brokers: 3, config: {{replica.lag.time.max.ms: 10000}}}}
topics: {{orders: {{partitions: {partitions}, replication: 3}}}}
workload: [{{produce: orders, rate: {rate}, from: 2s, until: {until}s}}]
faults: [{{at: 15s, pause: {{broker: 2}}, for: 20s}}]
run: {run}s
"""
IDLE = """\
cluster: {{brokers: 3}}
topics: {{orders: {{partitions: {partitions}, replication: 3}}}}
run: {run}s
"""


def bare_heap() -> float:
    """Call-backs per second: popped, called, and one more pushed."""
    heap = [(number, number, _nothing) for number in range(PENDING)]
    heapq.heapify(heap)
    began = time.perf_counter()
    for number in range(CALLBACKS):
        at, _, call = heapq.heappop(heap)
        call()
        heapq.heappush(heap, (at + PENDING, number, _nothing))
    return CALLBACKS / (time.perf_counter() - began)


def _nothing() -> None:
    pass


def simulate(text: str) -> tuple[int, float, float]:
    """(traced events, virtual seconds, real seconds), from boot to end."""
    sink = Sink()
    world = SimulatedWorld(scenario(text), 1, sink)
    began = time.perf_counter()
    Run(world).play()
    took = time.perf_counter() - began
    virtual_s = world.kernel.now / 1e6
    world.close()
    return len(sink.events), virtual_s, took


def figures() -> list[Figure]:
    text = RUN.format(partitions=PARTITIONS, rate=RATE, until=VIRTUAL_S - 2, run=VIRTUAL_S)
    heap = bare_heap()
    runs = [simulate(text) for _ in range(2)]
    events, virtual_s, took = min(runs, key=lambda run: run[2])
    heap = max(heap, bare_heap())
    scope = (
        f"3 brokers, {PARTITIONS} partitions × 3 replicas, {RATE} records/s to each partition, "
        f"acks 1, a follower paused for 20 s, {events} events"
    )
    return [
        Figure(
            what="simulated: traced events",
            value=events / took,
            unit="/s",
            scope=scope,
            against="call-backs per second of a bare heap",
            of=heap,
        ),
        Figure(what="virtual against real time", value=virtual_s / took, unit="×", scope=scope),
        _memory(),
    ]


def _memory() -> Figure:
    """Between two clusters, each in a process of its own, without a trace."""
    few, many = (_resident_kb_of(partitions) for partitions in (FEW, MANY))
    replicas = 3 * (MANY - FEW)
    return Figure(
        what="memory per partition replica",
        value=(many - few) / replicas,
        unit="KB",
        scope=f"3 brokers, idle, {MANY} against {FEW} partitions × 3 replicas; resident, no trace; "
        "with its part of ZooKeeper, controller and metadata caches",
    )


def _resident_kb_of(partitions: int) -> int:
    command = [sys.executable, "-m", "tests.bench.virtual_time", str(partitions)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(told.stdout)


def grown(partitions: int) -> int:
    """Kilobytes resident with an idle cluster of so many partitions."""
    sink = Sink()
    sink.close()  # the trace is somebody else's memory
    world = SimulatedWorld(scenario(IDLE.format(partitions=partitions, run=10)), 1, sink)
    Run(world).play()
    return resident_kb()


if __name__ == "__main__":
    print(grown(int(sys.argv[1])))
