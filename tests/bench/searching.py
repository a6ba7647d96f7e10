"""Searching: how long the whole of a small scope takes, and how many random schedules per second.

Processor time of one core, that of forked children included. The published model, in plain Python,
is what the whole is held against.
"""

from __future__ import annotations

import resource
import time

from emulator.conformance.forks import in_children
from emulator.explore.async_isr import published
from emulator.explore.async_isr.search import Explorer
from emulator.explore.async_isr.steps import Scope, Steps
from emulator.explore.schedule import schedule_of
from emulator.explore.stage import Played, Stage
from emulator.explore.strategies import AtRandom
from emulator.kernel.rng import Stream
from emulator.profiles.base import profiles
from emulator.scenario.load import loads
from tests.bench.figures import Figure

STEPS, WAYS = 20, 5_000
MOST_S, LEAST_PER_S = 10, 5_000
CLUSTER_WAYS, CLUSTER_WANTED_PER_S, LEAST_OF_FORKS = 300, 150, 0.15
CLUSTER = """\
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, from: 2s, until: 8s}]
faults: [{at: 3s, pause: {broker: 3}, for: 1s}]
run: 10s
"""


def pure_figures() -> list[Figure]:
    """Of the ISR transitions alone."""
    return [_whole(), _random()]


def cluster_figures() -> list[Figure]:
    """Of three brokers, one partition, after a shared warm start."""
    stage = Stage(schedule_of(loads(CLUSTER, "bench"), 1, begins="3s", steps=STEPS))

    def play(number: int) -> Played:
        return stage.play(AtRandom(STEPS, Stream(number), (), 0), then_us=0)

    began = _processor_s()
    for _ in in_children(range(CLUSTER_WAYS), _nothing, 1):
        pass
    forks = CLUSTER_WAYS / (_processor_s() - began)
    began, seconds, steps = _processor_s(), time.perf_counter(), 0
    for _, played in in_children(range(CLUSTER_WAYS), play, 1):
        steps += len(played.offered)
    assert steps == STEPS * CLUSTER_WAYS
    rate = CLUSTER_WAYS / (_processor_s() - began)
    clock = CLUSTER_WAYS / (time.perf_counter() - seconds)
    return [
        Figure(
            what=f"whole clusters: random schedules of {STEPS} steps",
            value=rate,
            unit="/s",
            scope="3 brokers, 1 partition, all invariants listen, a fork of a shared warm start "
            f"each, one at a time; {clock:.0f} per second of the clock; "
            f"{CLUSTER_WANTED_PER_S} are wanted of a quiet machine",
            against="forks of it that do nothing, per second of one core",
            of=forks,
            least=LEAST_OF_FORKS,
        )
    ]


def _nothing(_number: int) -> None:
    pass


def _processor_s() -> float:
    """Of this process and of its children that have ended."""
    mine, theirs = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def _steps() -> Steps:
    return Steps(Scope(), profiles()["2.7"])


def _scope() -> str:
    scope = Scope()
    return f"{scope.replicas} replicas, {scope.versions} versions, {scope.offsets} offsets"


def _whole() -> Figure:
    began = time.process_time()
    result = Explorer(_steps()).explore()
    took_s = time.process_time() - began
    began = time.process_time()
    beside = len(published.states(Scope()))
    beside_s = time.process_time() - began
    assert result.complete
    return Figure(
        what="AsyncIsr: every state, with the product's rules",
        value=took_s,
        unit="s",
        scope=f"{_scope()}: {result.states:,} states, {result.transitions:,} transitions",
        against=f"seconds for the published model's {beside:,} states",
        of=beside_s,
        most=MOST_S,
    )


def _random() -> Figure:
    explorer, stream = Explorer(_steps()), Stream(1)
    began = time.process_time()
    for _ in range(WAYS):
        assert explorer.random_way(stream, STEPS) is None
    rate = WAYS / (time.process_time() - began)
    return Figure(
        what=f"AsyncIsr: random schedules of {STEPS} steps",
        value=rate,
        unit="/s",
        scope=f"{_scope()}, one core",
        against="what issue 15 asks for",
        of=LEAST_PER_S,
        least=1,
    )
