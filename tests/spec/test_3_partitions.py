"""Section 3 of the spec: followers, the ISR, the high watermark, producing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.scenario.actions.clients import Consume, Produce, ProduceStop
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.actions.slow import SlowFollower
from emulator.trace import events
from tests.spec.emulated import LAG_MS, ORDERS_0, Emulated


def steady(rate: float = 20, **more: object) -> Produce:
    return Produce("orders", (0,), rate, "1", **more)


# -- 3.2, 3.3: who is out of sync ------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_3_3_removal_takes_between_one_and_one_and_a_half_times_the_limit(seed: int) -> None:
    with Emulated(seed=seed) as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady()).run_ms(2000).now_on().do(Pause(3))
        took_ms = cluster.run_until(cluster.isr_history)
        assert cluster.isr_history() == [(1, 2)]
        assert LAG_MS - 600 <= took_ms <= LAG_MS * 3 // 2 + 100


def test_3_3_a_follower_with_the_leaders_leo_is_never_expelled() -> None:
    """Nothing is produced: it is paused for ten times the lag and stays."""
    with Emulated(zookeeper_session_timeout_ms=60_000) as cluster:
        cluster.topic("orders", (1, 2, 3)).send().run_ms(2000).now_on()
        cluster.do(Pause(3)).run_ms(10 * LAG_MS)
        assert cluster.isr_history() == []


def test_3_3_one_record_that_it_lacks_is_enough() -> None:
    with Emulated(zookeeper_session_timeout_ms=60_000) as cluster:
        cluster.topic("orders", (1, 2, 3)).send().run_ms(2000).now_on()
        cluster.do(Pause(3)).send().run_ms(2 * LAG_MS)
        assert cluster.isr_history() == [(1, 2)]


def test_3_3_a_slow_follower_is_expelled_although_it_never_stops_fetching() -> None:
    with Emulated(replica_fetch_max_bytes=4000) as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady(20, record_bytes=1000)).run_ms(2000).now_on()
        cluster.do(SlowFollower(3, 10_000)).run_ms(8000)
        assert cluster.isr_history() == [(1, 2)]
        fetched = [e.t for e in cluster.seen(events.FetchSent, broker=3)]
        gaps = [b - a for a, b in pairwise(fetched)]
        assert max(gaps) < 1_000_000


def test_3_2_a_busy_follower_that_always_trails_a_little_stays() -> None:
    """It never reads exactly to the leader's end, but to what that was one fetch before."""
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady(200)).run_ms(2000).now_on()
        cluster.run_ms(8 * LAG_MS)
        behind = [e for e in cluster.seen(events.FollowerStateUpdated) if e.leo < e.leader_leo]
        assert len(behind) > 100
        assert cluster.isr_history() == []


def test_3_2_an_idle_partitions_follower_stays_caught_up_by_its_empty_fetches() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).run_ms(5 * LAG_MS)
        now_ms = cluster.kernel.now_ms()
        for follower in (2, 3):
            cluster.hosted(1).wake()
            replica = cluster.hosted(1).remotes[follower]
            assert now_ms - replica.last_caught_up_time_ms < 700


def test_3_3_a_follower_that_falls_behind_for_less_than_the_limit_stays() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady()).run_ms(2000).now_on()
        cluster.do(Pause(3)).run_ms(LAG_MS - 700).do(Resume(3)).run_ms(3 * LAG_MS)
        assert cluster.isr_history() == []


def test_3_3_all_out_of_sync_members_leave_in_one_write() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady()).run_ms(2000).now_on()
        cluster.do(Pause(2), Pause(3)).run_ms(2 * LAG_MS)
        assert cluster.isr_history()[-1] == (1,)
        assert len(cluster.isr_history()) <= 2


# -- 3.4: expansion --------------------------------------------------------------------------------


def test_3_4_one_follower_is_added_per_write_and_appended_to_the_list() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady()).run_ms(2000)
        cluster.do(Pause(2), Pause(3)).run_ms(2 * LAG_MS).now_on()
        cluster.do(Resume(3)).run_ms(1000).do(Resume(2)).run_ms(1500)
        assert cluster.isr_history() == [(1, 3), (1, 3, 2)]
        assert cluster.state().leader_and_isr.isr == (1, 3, 2)


def test_3_4_the_lag_time_is_not_consulted_for_joining() -> None:
    """It joins with its first fetch that reaches the high watermark, long before the lag."""
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady()).run_ms(2000)
        cluster.do(Pause(3)).run_ms(2 * LAG_MS).now_on().do(Resume(3))
        assert cluster.run_until(cluster.isr_history) < 1200


def test_3_4_who_joins_has_the_high_watermark() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady(100)).run_ms(2000)
        cluster.do(Pause(3)).run_ms(2 * LAG_MS).now_on().do(Resume(3)).run_ms(2000)
        (started,) = cluster.seen(events.IsrUpdateStarted, change="expand")
        joined = [
            e for e in cluster.seen(events.FollowerStateUpdated, replica=3) if e.seq < started.seq
        ][-1]
        assert joined.leo >= started.hw


# -- 3.5: the high watermark -----------------------------------------------------------------------


def test_3_5_a_follower_learns_the_high_watermark_one_fetch_round_after_the_record() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).now_on().send().run_ms(3000)
        (appended,) = cluster.seen(events.RecordsAppended, broker=2)
        (leader_hw,) = cluster.seen(events.HwAdvanced, broker=1)
        (follower_hw,) = cluster.seen(events.HwAdvanced, broker=2)
        between = [
            e.t
            for e in cluster.seen(events.FetchSent, broker=2)
            if appended.t <= e.t <= follower_hw.t
        ]
        assert appended.t < leader_hw.t < follower_hw.t
        assert len(between) == 2, "the one that showed its new end, and one more"


def test_3_5_the_high_watermark_waits_for_every_member_of_the_isr() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).now_on()
        cluster.do(Pause(3)).send(5).run_ms(LAG_MS - 1000)
        assert cluster.offsets(1) == (5, 0)
        cluster.run_ms(LAG_MS)
        assert cluster.offsets(1) == (5, 5)


def test_3_5_a_shrink_raises_it_without_any_fetch() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).do(Pause(2)).send(3).run_ms(100).now_on()
        cluster.run_until(cluster.isr_history)
        shrunk = cluster.seen(events.IsrUpdated)[0]
        (advanced,) = cluster.seen(events.HwAdvanced)
        assert (advanced.hw, advanced.t) == (3, shrunk.t)


def test_3_5_no_replica_has_a_high_watermark_beyond_its_log() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(steady(100)).run_ms(1000)
        cluster.do(Pause(3)).run_ms(3000).do(Resume(3)).run_ms(3000)
        assert all(e.hw <= e.leo for e in cluster.seen(events.HwAdvanced))


def test_3_5_consumers_read_up_to_the_high_watermark() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).do(Consume("orders", (0,))).run_ms(1500)
        cluster.do(Pause(2)).send(4).run_ms(LAG_MS - 1000)
        assert cluster.seen(events.RecordsConsumed) == []
        cluster.run_ms(LAG_MS)
        assert [e.to_offset for e in cluster.seen(events.RecordsConsumed)] == [4]


# -- 3.6: producing --------------------------------------------------------------------------------


def test_3_6_acks_0_and_1_are_answered_at_once_and_acks_all_by_the_high_watermark() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).now_on().do(Pause(3))
        for acks in ("0", "1", "all"):
            cluster.send(acks=acks)
        cluster.run_ms(LAG_MS - 800)
        assert sorted(cluster.produced()) == [("0", "ok"), ("1", "ok")]
        cluster.run_ms(LAG_MS)
        assert sorted(cluster.produced()) == [("0", "ok"), ("1", "ok"), ("all", "ok")]
        shrunk = cluster.seen(events.IsrUpdated)[0]
        answered = cluster.seen(events.RecordsProduced, acks="all")[0]
        assert answered.t > shrunk.t


def test_3_6_below_the_minimum_isr_nothing_is_written_for_acks_all() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2), min_insync_replicas=2)
        cluster.do(Pause(2)).send().run_ms(2 * LAG_MS).now_on()
        assert cluster.state().leader_and_isr.isr == (1,)
        cluster.send(acks="all").run_ms(1000)
        assert cluster.seen(events.RecordsAppended) == []
        cluster.send(acks="1").run_ms(3000)
        assert len(cluster.seen(events.RecordsAppended)) == 1


def test_3_6_records_whose_isr_shrank_meanwhile_are_there_but_not_acknowledged() -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND: the client retries, and writes them again later."""
    once = {"retries": 0}
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2), min_insync_replicas=2).now_on().do(Pause(2))
        cluster.do(Produce("orders", (0,), 1.0, "all", client=once)).run_ms(300)
        cluster.do(ProduceStop("orders")).run_ms(2 * LAG_MS)
        assert cluster.produced() == [("all", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")]
        assert cluster.offsets(1) == (1, 1)


def test_3_6_nothing_that_was_acknowledged_with_acks_all_is_missing_anywhere_in_the_isr() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3), min_insync_replicas=2)
        cluster.do(Produce("orders", (0,), 50.0, "all")).run_ms(3000)
        cluster.do(Pause(3)).run_ms(6000).do(Resume(3)).run_ms(3000).do(ProduceStop("orders"))
        cluster.run_ms(3000)
        acknowledged = [e for e in cluster.seen(events.RecordsProduced) if e.result == "ok"]
        end = max(e.base_offset + e.count for e in acknowledged)
        assert len(acknowledged) > 300
        assert all(cluster.offsets(b)[0] >= end for b in cluster.state().leader_and_isr.isr)
        assert cluster.hosted(1).partition == ORDERS_0
