"""Searching: how long the whole of a small scope takes, and how many random schedules per second.

Processor time of one core, that of forked children included. Whole clusters are explored by the
command itself, in a process of its own. The published model, in plain Python, is what the whole of
the small scope is held against.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from emulator.kafka.profiles.base import profiles
from emulator.kernel.rng import Stream
from emulator.search.async_isr import published
from emulator.search.async_isr.search import Explorer
from emulator.search.async_isr.steps import Scope, Steps
from tools.bench.figures import Figure
from tools.bench.processor import children_s

STEPS, WAYS = 20, 5_000
MOST_S, LEAST_PER_S = 10, 5_000
CLUSTER_WAYS, CLUSTER_LEAST_PER_S = 2_000, 150
CLUSTER = """\
cluster: {brokers: 3, config: {replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, from: 2s, until: 8s}]
faults: [{at: 3s, pause: {broker: 3}, for: 1s}]
run: 10s
"""


def pure_figures(schedules: int = WAYS) -> list[Figure]:
    """Of the ISR transitions alone."""
    return [_whole(), _random(schedules)]


def cluster_figures(schedules: int = CLUSTER_WAYS) -> list[Figure]:
    """Of three brokers, one partition, after a shared warm start: the command as anyone runs it,
    its start and the warm starts included."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.yaml"
        file.write_text(CLUSTER, encoding="utf-8")
        choosing = ["--seed", "1", "--from", "3s", "--steps", str(STEPS), "--then", "0s"]
        program = "import sys; from emulator.cli import main; main()"
        command = [sys.executable, "-c", program, "explore", str(file), *choosing, "--json"]
        began = children_s()
        run = subprocess.run(
            [*command, "--schedules", str(schedules)],
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = children_s() - began
    report = json.loads(run.stdout)
    assert report["schedules"] == schedules
    assert report["steps"] == STEPS * schedules
    return [
        Figure(
            what=f"whole clusters: random schedules of {STEPS} steps",
            value=schedules / took_s,
            unit="/s",
            scope=f"3 brokers, 1 partition, all invariants listen, one warm start for all; "
            f"processor time of isr explore --then 0s, {schedules:,} schedules; "
            f"{report['per_second']:.0f} per second of the clock, --jobs 1",
            reference="what issue 15 asks for",
            of=CLUSTER_LEAST_PER_S,
            least=1,
        )
    ]


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
        reference=f"seconds for the published model's {beside:,} states",
        of=beside_s,
        most=MOST_S,
    )


def _random(schedules: int) -> Figure:
    explorer, stream = Explorer(_steps()), Stream(1)
    began = time.process_time()
    for _ in range(schedules):
        assert explorer.random_path(stream, STEPS) is None
    rate = schedules / (time.process_time() - began)
    return Figure(
        what=f"AsyncIsr: random schedules of {STEPS} steps",
        value=rate,
        unit="/s",
        scope=f"{_scope()}, one core",
        reference="what issue 15 asks for",
        of=LEAST_PER_S,
        least=1,
    )
