"""Searching: how long the whole of a small scope takes, and how many random schedules per second.

Processor time of one core. The published model, in plain Python, is what the whole is held against.
"""

from __future__ import annotations

import time

from emulator.explore.async_isr import published
from emulator.explore.async_isr.search import Explorer
from emulator.explore.async_isr.steps import Scope, Steps
from emulator.kernel.rng import Stream
from emulator.profiles.base import profiles
from tests.bench.figures import Figure

STEPS, WAYS = 20, 5_000
MOST_S, LEAST_PER_S = 10, 5_000


def pure_figures() -> list[Figure]:
    """Of the ISR transitions alone."""
    return [_whole(), _random()]


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
