"""Slow tests: a thousand random worlds, and a large one that lasts an hour."""

from __future__ import annotations

import pytest

from emulator.invariants.base import Monitor
from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.sink import Sink
from tests.sim.other_process import played_elsewhere

pytestmark = pytest.mark.soak

SEEDS = 1_000
PARTITIONS = 200
LARGE = """
about: Seven brokers with two hundred partitions, for an hour; one thing or other is always wrong.
cluster:
  brokers: 7
  config: {replica.lag.time.max.ms: 10000}
topics:
  orders: {partitions: 200, replication: 3}
workload:
  - {produce: orders, rate: 0.02, acks: all, from: 10s, until: 55min}
faults:
  - {at: 5min, pause: {broker: 2}, for: 30s}
  - {at: 12min, kill: {broker: 3}, for: 2min}
  - {at: 20min, cut_zookeeper_link: {broker: 4}, for: 40s}
  - {at: 27min, terminate: {broker: 1}, for: 1min}
  - {at: 35min, cut_link: {broker: 5, peer: 6}, for: 1min}
  - {at: 42min, expire_session: {broker: 7}}
  - {at: 48min, pause: {server: zookeeper}, for: 10s}
run: 60min
expect: [the cluster converges]
"""


def test_a_thousand_worlds_without_a_failure_each_the_same_where_strings_hash_differently() -> None:
    one, other = played_elsewhere(range(SEEDS), (1, 7))
    assert [line for line in one if len(line.split()) > 2] == []
    assert one == other
    assert len({line.split()[1] for line in one}) == SEEDS


def test_seven_brokers_with_two_hundred_partitions_for_an_hour() -> None:
    sink, monitor = Sink(), Monitor(liveness=True)
    sink.listen(monitor)
    outcome = play(loads(LARGE, "large"), PlayOptions(seed=1), sink)
    assert monitor.at_end() == []
    assert outcome.virtual_us >= 3_600_000_000
    elected = {one.controller_epoch for one in sink.events if isinstance(one, e.ControllerElected)}
    assert len(elected) > 1, "its controller was lost as well"
    assert len([one for one in sink.events if isinstance(one, e.IsrUpdated)]) > PARTITIONS
