"""A broker whose wall clock is ahead deletes records before their time, and only that broker's
clock counts; timeouts do not follow it."""

from __future__ import annotations

from contextlib import closing

import pytest

from emulator.runs.play import Run
from emulator.scenario.load import loads
from emulator.trace import events
from emulator.trace.sink import Sink
from emulator.worlds.simulated import SimulatedWorld

HOUR_MS = 3_600_000
CLUSTER = """\
cluster: {brokers: 3}
topics: {orders: {partitions: [[1, 2, 3]], config: {retention.ms: %d}}}
workload: [{produce: orders, rate: 5, acks: all, from: 2s, until: 30s}]
faults: [{at: 40s, jump_clock: {broker: %d, offset_ms: %d}}]
run: 400s  # Kafka looks 30 s after a start, and every 5 minutes
"""


@pytest.mark.parametrize(
    ("broker", "offset_ms", "deletes"),
    [
        (1, 2 * HOUR_MS, True),
        (1, HOUR_MS // 2, False),
        (1, -2 * HOUR_MS, False),
        (2, 2 * HOUR_MS, False),
    ],
)
def test_a_leader_with_a_clock_ahead_deletes_by_retention(
    broker: int, offset_ms: int, deletes: bool
) -> None:
    sink, scenario = Sink(), loads(CLUSTER % (HOUR_MS, broker, offset_ms), "clock")
    with closing(SimulatedWorld(scenario, 1, sink)) as world:
        Run(world).play()
    moved = {e.broker for e in sink.events if isinstance(e, events.LogStartMoved) and e.t > 4e7}
    assert (1 in moved) == deletes
    # Sessions, lags and timeouts are measured by another clock.
    late = [e for e in sink.events if e.t > 4e7]
    assert not [e for e in late if isinstance(e, events.IsrUpdateStarted)]
