"""Faults of the network on the wall clock: the same code as in virtual time, on top of what the
machine takes."""

from __future__ import annotations

import pytest

from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.sink import Sink
from tests.sim.test_network_faults import OBEYED_ONCE, isrs, sent_to, told_about

pytestmark = pytest.mark.live

MANY = """\
about: Several faults at once, each of them healed.
cluster: {first: 1, config: {replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 20, acks: all, from: 1s, until: 14s}]
faults:
  - {at: 2s, break_connection: {broker: 1, peer: 3, when: after, request: LeaderAndIsr}}
  - {at: 2s, lossy_link: {broker: 1, peer: zookeeper, loss: 0.3}, for: 4s}
  - {at: 3s, create_topic: {topic: bills, assignment: [[2, 3, 1]]}}
  - {at: 4s, link_latency: {broker: 2, peer: 1, low_ms: 99, typical_ms: 300, high_ms: 600}, for: 4s}
  - {at: 5s, cut_link: {broker: 3, peer: 1, ways: to_peer}, for: 5s}
  - {at: 5s, slow_link: {broker: 1, peer: 2, bytes_per_s: 100000}, for: 3s}
run: 18s
"""


def test_several_at_once_and_all_is_well_when_they_are_healed() -> None:
    sink = Sink()
    options = PlayOptions(seed=1, zookeeper="embedded", time_scale=2)
    play(loads(MANY, "many"), options, sink)
    assert sent_to(3, sink.events, "LeaderAndIsr")[-2:] == [1, 2]
    assert told_about("bills", 3, sink.events) == OBEYED_ONCE
    assert (1, 2) in isrs(sink.events), "3 is out while its fetches do not arrive"
    assert sorted(isrs(sink.events)[-1]) == [1, 2, 3]
    delays = [one.elapsed_us for one in sink.events if isinstance(one, e.ZkReply)]
    assert max(delays) > 200_000, "something was sent again"
    assert not [one for one in sink.events if isinstance(one, e.ThreadFailed)]
