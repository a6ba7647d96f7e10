"""Section 4 of the spec: periodic tasks, propagation, metadata."""

from __future__ import annotations

import pytest

from emulator.kernel.scheduler import Task
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from tests.spec.emulated import LAG_MS, ORDERS_0, Emulated


def changes_and_notifications(cluster: Emulated) -> tuple[list[int], list[int]]:
    """Milliseconds of the ISR changes, and of the notifications."""
    changed = [e.t // 1000 for e in cluster.seen(events.IsrUpdated)]
    return changed, [e.t // 1000 for e in cluster.seen(events.IsrChangeNotified)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_4_2_a_change_is_told_5_to_7500_ms_after_the_last_one(seed: int) -> None:
    with Emulated(seed=seed) as cluster:
        cluster.topic("orders", (1, 2, 3)).do(Produce("orders", (0,), 20.0)).run_ms(1000)
        cluster.do(Pause(3)).run_ms(4000).do(Resume(3)).run_ms(12_000)
        changed, told = changes_and_notifications(cluster)
        assert (len(changed), len(told)) == (2, 1)
        assert 5000 < told[0] - changed[-1] <= 7550


def test_4_2_every_change_of_any_partition_starts_the_quiet_period_anew() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3), (1, 3, 2))
        cluster.do(Produce("orders", (0, 1), 20.0)).run_ms(1000)
        for _ in range(3):
            cluster.do(Pause(3)).run_ms(3500).do(Resume(3)).run_ms(1000)
        cluster.run_ms(10_000)
        changed, told = changes_and_notifications(cluster)
        assert (len(changed), len(told)) == (12, 1)
        assert told[0] > changed[-1] + 5000
        assert set(cluster.seen(events.IsrChangeNotified)[0].partitions) == {
            ORDERS_0,
            ORDERS_0._replace(partition=1),
        }


def test_4_2_after_a_quiet_minute_the_first_change_goes_out_with_the_next_run() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).run_ms(61_000)
        cluster.do(Pause(3)).send().run_ms(2 * LAG_MS + 2600)
        changed, told = changes_and_notifications(cluster)
        assert (len(changed), len(told)) == (1, 1)
        assert told[0] - changed[0] <= 2550


def test_4_2_under_steady_changes_the_set_goes_out_a_minute_after_the_last_propagation() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(Produce("orders", (0,), 20.0)).run_ms(1000)
        began_ms = cluster.kernel.now // 1000
        for _ in range(30):
            cluster.do(Pause(3)).run_ms(3200).do(Resume(3)).run_ms(800)
        changed, told = changes_and_notifications(cluster)
        assert len(changed) >= 50
        assert 1 <= len(told) <= 2
        assert told[0] - began_ms <= 62_600


def test_4_5_clients_see_a_change_only_after_the_controllers_next_update_metadata() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).do(Pause(3)).send().run_ms(2 * LAG_MS)
        assert cluster.state().leader_and_isr.isr == (1, 2)
        assert {cluster.cached_isr(b) for b in (1, 2)} == {(1, 2, 3)}
        cluster.run_until(lambda: cluster.seen(events.IsrChangeNotified))
        cluster.run_ms(200)
        assert {cluster.cached_isr(b) for b in (1, 2)} == {(1, 2)}


def test_4_5_the_leaders_own_metadata_is_as_stale_as_everybodys() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (2, 1, 3)).do(Pause(3)).send().run_ms(2 * LAG_MS)
        assert cluster.hosted(2).isr == (2, 1)
        assert cluster.cached_isr(2) == (2, 1, 3)


def test_4_1_the_shrink_pass_runs_every_half_lag_and_makes_up_for_what_a_pause_missed() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (1, 2, 3)).run_ms(1000).now_on()
        passes = cluster.kernel.checkpoints["missed_run"]
        made_up: list[int] = []

        async def noted(task: Task) -> None:
            if "isr-expiration" in repr(task):
                made_up.append(cluster.kernel.now // 1000)
            await passes(task)

        cluster.kernel.checkpoints["missed_run"] = noted
        resumed_ms = cluster.do(Pause(1)).run_ms(4700).do(Resume(1)).kernel.now // 1000
        cluster.run_ms(900)
        assert len(made_up) in (3, 4)
        assert all(at - resumed_ms < 100 for at in made_up)


def test_4_1_the_high_watermark_is_checkpointed_every_five_seconds() -> None:
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2)).send(3).run_ms(5100)
        manager = cluster.node(1).replica_manager
        assert manager is not None
        written = manager._logs._disk.checkpointed_high_watermarks
        assert written[ORDERS_0] == 3


def test_4_3_update_metadata_about_live_brokers_precedes_the_first_role() -> None:
    """A follower cannot start while its leader is not known to be alive (H28)."""
    with Emulated(1, 2) as cluster:
        cluster.topic("orders", (1, 2))
        for broker in (1, 2):
            first = cluster.seen(events.LeaderAndIsr, broker=broker)[0]
            known = cluster.seen(events.MetadataCacheUpdated, broker=broker)[0]
            assert known.seq < first.seq


def test_3_7_while_an_isr_write_waits_for_zookeeper_produces_of_that_partition_wait() -> None:
    """H22: nothing else of the partition is served; other partitions are."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=30_000) as cluster:
        cluster.topic("orders", (2, 3), (2, 1))
        cluster.do(Pause(3)).send().run_ms(LAG_MS - 800).do(Pause(None, "zookeeper")).run_ms(LAG_MS)
        started = cluster.seen(events.IsrUpdateStarted, partition=ORDERS_0)
        assert len(started) == 1 and not cluster.isr_history()
        cluster.now_on().send(partition=0).send(partition=1).run_ms(2000)
        assert [e.partition.partition for e in cluster.seen(events.RecordsAppended, broker=2)] == [
            1
        ]
        cluster.do(Resume(None, "zookeeper")).run_ms(1000)
        assert cluster.isr_history() == [(2,)]
        assert [e.partition.partition for e in cluster.seen(events.RecordsAppended, broker=2)] == [
            1,
            0,
        ]
