"""The simulated world: how many traced events per second, and how much faster than the clock.

Held against a heap of callbacks that do nothing, popped one by one in the same run: what any
discrete-event simulation in this language pays before it does anything.
"""

from __future__ import annotations

import heapq
import time
from typing import NamedTuple

from emulator.runs.play import PlayOptions
from emulator.runs.session import Listening, Session
from emulator.worlds.gc_tuning import rare_collections
from tools.bench.figures import Figure
from tools.bench.live_cluster import scenario

CALLBACKS = 300_000
PENDING = 1_000
TURNS = 5
PARTITIONS = 30
LEAST_EVENTS, LEAST_FASTER = 0.05, 500
"""0.05 events per bare callback was reached with mypyc; without it 0.039 (ADR 9)."""

RUN = """\
cluster: {{brokers: 3, config: {{replica.lag.time.max.ms: 10000}}}}
topics: {{orders: {{partitions: {partitions}, replication: 3}}}}
workload: [{{produce: orders, rate: {rate}, from: 2s, until: {until}s}}]
faults: [{{at: 15s, pause: {{broker: 2}}, for: 15s}}]
run: {run}s
"""


class Load(NamedTuple):
    """How much is written: records per second to each partition, for how long."""

    rate: float
    run_s: int
    scope: str

    @property
    def text(self) -> str:
        until = self.run_s - 2
        return RUN.format(partitions=PARTITIONS, rate=self.rate, until=until, run=self.run_s)


BUSY = Load(10, 60, "10 records/s to each partition")
STEADY = Load(round(10 / PARTITIONS, 4), 300, "10 records/s in all")


def bare_heap() -> float:
    """Callbacks per second: popped, called, and one more pushed."""
    heap = [(number, number, _nothing) for number in range(PENDING)]
    heapq.heapify(heap)
    began = time.process_time()
    for number in range(CALLBACKS):
        at, _, call = heapq.heappop(heap)
        call()
        heapq.heappush(heap, (at + PENDING, number, _nothing))
    return CALLBACKS / (time.process_time() - began)


def _nothing() -> None:
    pass


class Played(NamedTuple):
    """One run, from boot to end; processor time."""

    events: int
    virtual_s: float
    real_s: float


def simulate(load: Load, *, watched: bool) -> Played:
    """With all invariants listening, if it is watched."""
    hearing: Listening = "invariants" if watched else "nothing"
    with Session(scenario(load.text), PlayOptions(seed=1), hearing=hearing) as session:
        with rare_collections():
            began = time.process_time()
            session.run.play()
            took = time.process_time() - began
        return Played(len(session.events), session.kernel.now / 1e6, took)


def figures(busy: Load = BUSY, steady: Load = STEADY, turns: int = TURNS) -> list[Figure]:
    """In turns, the heap before each run, and the best of each: what else the machine does takes
    from both alike."""
    heap, played = 0.0, dict[tuple[Load, bool], Played]()
    for _ in range(turns):
        for run in ((busy, True), (busy, False), (steady, True)):
            heap = max(heap, bare_heap())
            now, best = simulate(run[0], watched=run[1]), played.get(run)
            played[run] = now if best is None or now.real_s < best.real_s else best
    return [
        _events(busy, played[busy, True], heap, "all invariants listen", LEAST_EVENTS),
        _events(busy, played[busy, False], heap, "nobody listens", None),
        _faster(steady, played[steady, True], LEAST_FASTER),
        _faster(busy, played[busy, True], None),
    ]


def _scope(load: Load, played: Played) -> str:
    return (
        f"3 brokers, {PARTITIONS} partitions × 3 replicas, {load.scope}, acks 1, a follower "
        f"paused for 15 s, {played.events:,} events"
    )


def _events(load: Load, played: Played, heap: float, listening: str, least: float | None) -> Figure:
    return Figure(
        what=f"simulated: traced events, {listening}",
        value=played.events / played.real_s,
        unit="/s",
        scope=_scope(load, played),
        reference="callbacks per second of a bare heap",
        of=heap,
        least=least,
    )


def _faster(load: Load, played: Played, least: float | None) -> Figure:
    return Figure(
        what="virtual against real time",
        value=played.virtual_s,
        unit="s",
        scope=f"{_scope(load, played)}, all invariants listen",
        reference="seconds of processor time",
        of=played.real_s,
        least=least,
    )
