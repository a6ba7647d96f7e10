"""Kafka 2.6's own failures under ZooKeeper faults, observed and recognised by name."""

from __future__ import annotations

from emulator.invariants.base import Monitor
from emulator.invariants.known.base import recognise
from emulator.runs.play import PlayOptions, play
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.sink import Sink

HALF_WAY = """\
about: >
  Broker 2, which led orders, comes back to a topic whose settings it has to read. It loses its
  connection at each read, and then its session.
cluster: {first: 1, config: {zookeeper.session.timeout.ms: 6000, replica.lag.time.max.ms: 2000}}
topics: {orders: {partitions: [[2, 1, 3]]}}
workload: [{produce: orders, rate: 10, acks: 1, from: 1s}]
faults:
  - {at: 3s, pause: {broker: 2}, for: 10s}
  - {at: 5s, create_topic: {topic: bills, assignment: [[1, 2, 3]]}}
  - {at: 12s, drop_connection: {broker: 2, when: before, op: getData, count: 100}, for: 8s}
  - {at: 19s, expire_session: 2}
run: 60s
"""


def test_a_session_that_ends_in_the_middle_of_a_leader_and_isr_leaves_a_follower_out() -> None:
    """KAFKA-9769: the epoch was taken, the fetcher was not started; sent again it is ignored."""
    sink, monitor = Sink(), Monitor(liveness=True)
    sink.listen(monitor)
    play(loads(HALF_WAY, "half-way"), PlayOptions(seed=8), sink)
    failed = [one for one in sink.events if isinstance(one, e.ThreadFailed) and one.broker == 2]
    assert "LeaderAndIsrRequest" in [one.what for one in failed]
    lacking = [
        one for one in monitor.lacking() if one.partition and one.partition.topic == "orders"
    ]
    assert [one.text for one in lacking] == [
        "broker 2 follows 1, but has not fetched from it since",
        "[2] of its replicas are not in the ISR [1, 3]",
    ]
    assert [recognise(one, sink.events) for one in lacking] == ["KAFKA-9769"] * 2
    without = [one for one in sink.events if one not in failed]
    assert [recognise(one, without) for one in lacking] == ["", ""]
