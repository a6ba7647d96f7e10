"""ISR updates through the whole live path, against what plain kazoo does on the same server.

The path: a leader's thread, the partition's write lock, Kafka's conditional update, the session,
the tap that reads along, the server, its log read back, the trace.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from emulator.kafka.broker.partition import Partition
from emulator.scenario.actions.clients import Send
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace.events import IsrUpdated, IsrUpdateStarted
from emulator.worlds.emulated_host import nodes_of
from tools.bench.figures import Figure, median
from tools.bench.live_cluster import LiveCluster, live_cluster, plain_kazoo

LEAST = 0.5
UPDATES = 2_000
TURNS = 5
"""One after the other, the median of each: a hiccup of the machine, or its luck, is in one turn."""

PARTITIONS = 400
PAUSE_IN_A_PASS_US = 100_000
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'

MANY_IN_FLIGHT = """\
cluster:
  brokers: 2
  config:
    replica.lag.time.max.ms: 600000
    zookeeper.session.timeout.ms: 60000
    zookeeper.max.in.flight.requests: {in_flight}
topics: {{orders: {{partitions: [{partitions}]}}}}
run: 1min
"""
ONE_AFTER_THE_OTHER = """\
cluster:
  brokers: 2
  config: {{replica.lag.time.max.ms: 2000, zookeeper.session.timeout.ms: 60000}}
topics: {{orders: {{partitions: [{partitions}]}}}}
run: 1min
"""


def replicas(partitions: int) -> str:
    """All led by broker 1."""
    return ", ".join(["[1, 2]"] * partitions)


# ---- many in flight ------------------------------------------------------------------------------


def many_in_flight(in_flight: int, updates: int = UPDATES, turns: int = TURNS) -> Figure:
    text = MANY_IN_FLIGHT.format(in_flight=in_flight, partitions=replicas(in_flight))
    with live_cluster(text) as cluster:
        cluster.apply_due(1)
        cluster.until(lambda: _leads_all(cluster, in_flight))
        Pause(2).apply(cluster.world.cluster)  # nobody fetches: what is measured is alone
        each = updates // in_flight
        rates = [
            (_rate_of_updates(cluster, each), _rate_of_set_async(cluster, in_flight, each))
            for _ in range(turns)
        ]
    ours, raw = (median(one) for one in zip(*rates, strict=True))
    scope = (
        f"1 broker, {in_flight} partitions, {in_flight} requests in flight, {updates} updates, "
        "traced, through a tap, server's log read back"
    )
    return Figure(
        what="ISR updates, many at a time",
        value=ours,
        unit="/s",
        scope=scope,
        reference="kazoo set_async",
        of=raw,
        least=LEAST,
    )


def _leads_all(cluster: LiveCluster, partitions: int) -> bool:
    return len(cluster.partitions_led(1)) == partitions


def _rate_of_updates(cluster: LiveCluster, updates: int) -> float:
    """Each partition in a thread of its own, one ISR after the other: its follower was never seen,
    or has just fetched from the end of the log."""
    partitions = cluster.partitions_led(1)
    left = len(partitions)
    context = nodes_of(cluster.world.cluster)[1].context

    async def change_again_and_again(partition: Partition) -> None:
        nonlocal left
        log = partition.leader_log
        assert log is not None
        for _ in range(updates):
            if len(partition.isr) == 2:
                partition.remotes[2].forget_offsets()
                partition.remotes[2].last_caught_up_time_ms = 0
                await partition.leader_isr.maybe_shrink()
            else:
                end, now_ms = log.log_end_offset, context.now_ms()
                await partition.update_follower_fetch_state(2, end, 0, now_ms, end)
        left -= 1
        if not left:
            cluster.kernel.stop()

    for number, partition in enumerate(partitions):
        context.process.spawn(f"bench-{number}", change_again_and_again(partition))
    began, before = time.perf_counter(), cluster.count[IsrUpdated]
    while left:
        cluster.kernel.run(cluster.kernel.now + 60_000_000)
    took = time.perf_counter() - began
    return (cluster.count[IsrUpdated] - before) / took


def _rate_of_set_async(cluster: LiveCluster, in_flight: int, updates: int) -> float:
    """As many chains of writes, each sent when the one before it was answered."""
    done, lock, counts = threading.Event(), threading.Lock(), {"left": in_flight}
    with plain_kazoo(cluster.world) as client:
        names = [client.create("/raw-", STATE, sequence=True) for _ in range(in_flight)]

        def send(path: str, left: int, version: int) -> None:
            answer = client.set_async(path, STATE, version)
            answer.rawlink(lambda result: answered(path, left - 1, result.get().version))

        def answered(path: str, left: int, version: int) -> None:
            if left:
                send(path, left, version)
                return
            with lock:
                counts["left"] -= 1
                if not counts["left"]:
                    done.set()

        began = time.perf_counter()
        for path in names:
            send(path, updates, 0)
        assert done.wait(60)
        return updates * in_flight / (time.perf_counter() - began)


# ---- one after the other -------------------------------------------------------------------------


def shrink_pass(partitions: int = PARTITIONS, turns: int = TURNS) -> Figure:
    """One run of isr-expiration: many partitions lose their follower."""
    text = ONE_AFTER_THE_OTHER.format(partitions=replicas(partitions))
    with live_cluster(text) as cluster:
        cluster.apply_due(1)
        cluster.until(lambda: _leads_all(cluster, partitions))
        rates = [
            (_one_pass(cluster, partitions), _rate_of_set(cluster, partitions))
            for _ in range(turns)
        ]
    ours, raw = (median(one) for one in zip(*rates, strict=True))
    return Figure(
        what="a broker's serial shrink pass",
        value=ours,
        unit="/s",
        scope=f"1 leader, {partitions} partitions lose a follower, one isr-expiration thread",
        reference="kazoo set",
        of=raw,
        least=LEAST,
    )


def _one_pass(cluster: LiveCluster, partitions: int) -> float:
    """A follower stands still until it is in no ISR any more, and comes back."""
    world, before = cluster.world.cluster, len(cluster.sink.events)
    done = cluster.count[IsrUpdated] + partitions
    Pause(2).apply(world)
    Send("orders", tuple(range(partitions)), 1).apply(world)
    cluster.until(lambda: cluster.count[IsrUpdated] >= done)
    rate = partitions / sum(_times(cluster.sink.events[before:]))
    Resume(2).apply(world)
    cluster.until(lambda: cluster.count[IsrUpdated] >= done + partitions)
    return rate


def _times(events: list[object]) -> Iterator[float]:
    """Seconds from each decision to the next; the wait between two runs of the task is none."""
    started = [event for event in events if isinstance(event, IsrUpdateStarted)]
    last = next(e for e in reversed(events) if isinstance(e, IsrUpdated))
    for one, after in zip(started, [*started[1:], last], strict=True):
        if after.t - one.t < PAUSE_IN_A_PASS_US:
            yield (after.t - one.t) / 1e6


def _rate_of_set(cluster: LiveCluster, partitions: int) -> float:
    with plain_kazoo(cluster.world) as client:
        names = [client.create("/raw-", STATE, sequence=True) for _ in range(partitions)]
        began = time.perf_counter()
        for path in names:
            client.set(path, STATE, 0)
        return partitions / (time.perf_counter() - began)
