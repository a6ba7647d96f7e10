"""Section 5 of the spec: fetcher threads, their order, limits, quotas and delays."""

from __future__ import annotations

from itertools import pairwise, permutations

from emulator.scenario.actions.admin import BrokerConfig, TopicConfig
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.life import Kill, Start
from emulator.scenario.actions.link import CutLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.actions.slow import SlowFollower
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.spec.emulated import LAG_MS, ORDERS_0, Emulated


def test_5_1_connections_per_broker_are_the_others_times_the_fetchers() -> None:
    """10 brokers x 10 fetchers: 90 connections of fetchers at every broker."""
    brokers = range(1, 11)
    pairs = list(permutations(brokers, 2))
    assignment = [pair for pair in pairs for _ in range(10)]
    with Emulated(*brokers, num_replica_fetchers=10, replica_lag_time_max_ms=30_000) as cluster:
        cluster.topic("orders", *assignment)
        connected = cluster.world.network._open
        for broker in brokers:
            process = cluster.node(broker).context.process
            fetchers = [
                c.client
                for c in connected
                if c.listener.process is process and "fetcher" in c.client
            ]
            assert len(fetchers) == len(set(fetchers)) == 90
        started = cluster.seen(events.FetcherStarted)
        assert len(started) == 10 * 90


def test_5_2_partitions_take_turns_when_an_answer_cannot_hold_all() -> None:
    """A response holds one or two of six partitions, fewer records than are produced meanwhile. No
    follower has left the ISR yet: a high watermark that moves with every append would move its
    partition to the end of the session too."""
    limits = {"replica_fetch_response_max_bytes": 4000, "replica_lag_time_max_ms": 30_000}
    with Emulated(1, 2, **limits) as cluster:
        cluster.topic("orders", *[(1, 2)] * 6)
        cluster.do(Produce("orders", tuple(range(6)), 5.0, record_bytes=1000)).run_ms(1500)
        cluster.do(SlowFollower(2, 20_000)).run_ms(2000).now_on().run_ms(9000)
        came: dict[int, list[int]] = {n: [cluster.kernel.now - 9_000_000] for n in range(6)}
        for event in cluster.seen(events.RecordsAppended, broker=2):
            came[event.partition.partition].append(event.t)
        gaps = [b - a for times in came.values() for a, b in pairwise(times)]
        assert cluster.offsets(1)[0] - cluster.offsets(2)[0] > 10, "it is behind all the time"
        assert max(gaps) < 1_500_000
        assert all(cluster.kernel.now - times[-1] < 1_500_000 for times in came.values())


def test_5_6_the_first_partition_with_records_may_exceed_every_limit() -> None:
    limits = {"replica_fetch_response_max_bytes": 100, "replica_fetch_max_bytes": 100}
    with Emulated(1, 2, **limits) as cluster:
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(Produce("orders", (0,), 10.0, record_bytes=5000)).run_ms(2000)
        assert cluster.offsets(2)[0] > 10


def test_5_6_an_idle_fetch_waits_for_its_half_second() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).now_on().run_ms(10_000)
        fetches = cluster.seen(events.FetchSent, broker=2)
        assert 18 <= len(fetches) <= 20
        assert all(not e.offsets for e in fetches), "an incremental session names nothing"


def test_5_6_throttled_replicas_that_are_out_of_sync_are_slowed_down_and_those_in_sync_never() -> (
    None
):
    with Emulated(1, 2, 3) as cluster:
        cluster.topic("orders", (1, 2, 3))
        throttle = {"leader.replication.throttled.replicas": "0:1"}
        cluster.do(TopicConfig("orders", throttle))
        cluster.do(BrokerConfig(1, {"leader.replication.throttled.rate": "10000"})).run_ms(1500)
        cluster.do(Produce("orders", (0,), 50.0, record_bytes=1000)).run_ms(4000).now_on()
        assert cluster.offsets(1)[0] - cluster.offsets(2)[0] < 5, "in sync: no throttle"
        cluster.do(Pause(3)).run_ms(2 * LAG_MS).do(Resume(3)).run_ms(12_000)
        assert cluster.isr_history() == [(1, 2)]
        assert cluster.offsets(1)[0] - cluster.offsets(2)[0] < 5
        assert cluster.offsets(1)[0] - cluster.offsets(3)[0] > 100


def test_5_5_a_silent_leader_costs_the_follower_its_request_time_out_and_two_back_offs() -> None:
    with Emulated(1, 2, request_timeout_ms=3000, replica_socket_timeout_ms=3000) as cluster:
        cluster.topic("orders", (1, 2)).now_on().do(CutLink(1, 2)).run_ms(5500)
        delayed = cluster.seen(events.PartitionDelayed, broker=2)
        assert [(e.reason, e.delay_ms) for e in delayed] == [("DISCONNECTED", 1000)]
        cluster.do(HealLink(1, 2)).now_on().send().run_ms(6000)
        assert cluster.offsets(2) == (1, 1)


def test_5_3_a_follower_truncates_what_the_new_leader_never_had_and_then_fetches() -> None:
    """Broker 1 leads with records that no other replica has, dies, and comes back as a follower."""
    with Emulated(2, 1, 3, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (1, 3)).send(3).run_ms(2000)
        cluster.do(Pause(3)).run_ms(600).send(4).run_ms(300)
        assert cluster.offsets(1) == (7, 3)
        disk = cluster.world.cluster.hosts[1].disk
        cluster.do(Kill(1)).run_ms(200).do(Resume(3)).run_ms(9000)
        assert cluster.state().leader_and_isr.leader == 3
        cluster.now_on().send(2).run_ms(1500)
        assert disk.logs[ORDERS_0].log_end_offset == 7
        cluster.do(Start(1)).run_ms(6000)
        (truncated,) = cluster.seen(events.LogTruncated)
        assert (truncated.broker, truncated.from_leo, truncated.to_offset) == (1, 7, 3)
        assert cluster.offsets(1)[0] == cluster.offsets(3)[0] == 5
        assert [b.leader_epoch for b in disk.logs[ORDERS_0].batches][-1] > 0


def test_5_1_a_leader_without_followed_partitions_left_loses_its_fetcher_thread() -> None:
    with Emulated(3, 1, 2, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (1, 2)).now_on()
        cluster.do(Kill(1)).run_ms(12_000)
        assert cluster.hosted(2).is_leader
        assert [
            (e.leader, e.fetcher_id) for e in cluster.seen(events.FetcherStopped, broker=2)
        ] == [(1, 0)]


def test_5_1_partitions_of_one_leader_are_spread_over_fetchers_by_their_hash() -> None:
    with Emulated(1, 2, num_replica_fetchers=3) as cluster:
        cluster.topic("orders", *[(1, 2)] * 6)
        manager = cluster.node(2).replica_manager
        assert manager is not None and manager.fetchers is not None
        where = {key: list(t.partitions) for key, t in manager.fetchers.threads.items()}
        assert sorted(where) == [(1, 0), (1, 1), (1, 2)]
        assert all(len(found) == 2 for found in where.values())
        for found in where.values():
            first, second = sorted(p.partition for p in found)
            assert second - first == 3
        assert TopicPartition("orders", 5) in {p for found in where.values() for p in found}
