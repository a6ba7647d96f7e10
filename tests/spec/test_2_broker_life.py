"""Broker lifecycle in the spec: registration, sessions, crashes, orderly shutdown (sections 2.8,
2.10, 3.5, 6.4, 6.11), and failed log directories (1.8)."""

from __future__ import annotations

import pytest

from emulator.scenario.actions.life import Crash, Kill, Start, Terminate
from emulator.scenario.actions.link import CutLink, CutZookeeperLink, HealZookeeperLink
from emulator.scenario.actions.log_dir import FailLogDir, RepairLogDir
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from emulator.trace.values import TopicPartition
from tests.spec.emulated import ORDERS_0, Emulated

SESSION_MS = 6000
BILLS_0 = TopicPartition("bills", 0)


def failures(cluster: Emulated) -> list[tuple[int, str]]:
    return [(e.broker, e.what) for e in cluster.seen(events.ThreadFailed)]


def epochs(cluster: Emulated, broker: int) -> list[int]:
    return [e.broker_epoch for e in cluster.seen(events.BrokerRegistered, broker=broker)]


# -- registration and sessions ---------------------------------------------------------------------


def test_2_8_who_is_back_before_its_old_session_ended_cannot_register_and_exits() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.now_on().do(Kill(2)).run_ms(200).do(Start(2)).run_ms(4000)
        assert failures(cluster) == [(2, "startup")]
        assert [e.broker for e in cluster.seen(events.BrokerExited)] == [2]
        cluster.run_ms(6000).do(Start(2)).run_ms(4000)
        assert cluster.node(2).started


def test_a_broker_that_does_not_reach_zookeeper_gives_up_after_its_connection_time_out() -> None:
    settings = {"zookeeper_session_timeout_ms": SESSION_MS}
    with Emulated(1, 2, 3, **settings, zookeeper_connection_timeout_ms=3000) as cluster:
        cluster.do(Kill(2)).run_ms(9000).now_on().do(CutZookeeperLink(2), Start(2)).run_ms(8000)
        assert failures(cluster) == [(2, "startup")]
        assert [e.broker for e in cluster.seen(events.BrokerExited)] == [2]
        cluster.do(HealZookeeperLink(2), Start(2)).run_ms(8000)
        assert cluster.node(2).started


def test_sigterm_while_it_starts_halts_it() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.do(Kill(2)).run_ms(9000).now_on().do(Start(2)).run_ms(100).do(Terminate(2))
        (halted,) = cluster.seen(events.BrokerHalted)
        assert (halted.broker, halted.reason) == (2, "SIGTERM during start-up")
        cluster.run_ms(8000).do(Start(2)).run_ms(4000)
        assert cluster.node(2).started


def test_2_10_after_an_expiry_it_registers_anew_with_a_greater_epoch_and_keeps_its_roles() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3))
        before = cluster.node(2).broker_epoch
        cluster.now_on().do(Pause(2)).run_ms(9000).do(Resume(2)).run_ms(6000)
        (epoch,) = epochs(cluster, 2)
        assert epoch > before
        assert cluster.state().leader_and_isr.leader == 3
        assert not cluster.hosted(2).is_leader


def test_2_10_a_controller_that_slept_through_its_expiry_resigns_and_there_is_another() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(Pause(1)).run_ms(9000).do(Resume(1))
        cluster.run_ms(6000)
        (elected,) = cluster.seen(events.ControllerElected)
        assert elected.broker in (2, 3)
        assert [e.broker for e in cluster.seen(events.ControllerResigned)] == [1]
        assert not cluster.node(1).controller.is_active


def test_6_4_a_bounce_that_the_controller_did_not_see_is_a_failure_and_a_start() -> None:
    """The registration is deleted and recreated while the controller is paused."""
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(Terminate(2)).run_ms(60).do(Pause(1))
        cluster.run_ms(2500).do(Start(2)).run_ms(1200).do(Resume(1)).run_ms(5000)
        changes = [(e.added, e.deleted, e.bounced) for e in cluster.seen(events.BrokerChange)]
        assert ((), (), (2,)) in changes or ((2,), (), ()) in changes
        assert cluster.node(2).started
        assert set(cluster.state().leader_and_isr.isr) == {2, 3}


# -- what a crash leaves ---------------------------------------------------------------------------


def test_3_5_a_kill_leaves_the_log_and_the_high_watermark_of_the_last_checkpoint() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2,)).send(3).run_ms(6000).send(4).run_ms(200)
        disk = cluster.world.cluster.hosts[2].disk
        cluster.do(Kill(2))
        assert disk.logs[ORDERS_0].log_end_offset == 7
        assert disk.checkpointed_high_watermarks[ORDERS_0] == 3


def test_3_5_who_comes_back_begins_with_the_checkpointed_high_watermark_not_the_latest() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (3, 2)).send(3).run_ms(6000).send(4).run_ms(1500)
        assert cluster.offsets(2) == (7, 7)
        cluster.do(Kill(2)).run_ms(9000).now_on().do(Start(2)).run_ms(6000)
        (follows,) = cluster.seen(events.BecomesFollower, broker=2)
        assert (follows.leo, follows.hw) == (7, 3)
        assert cluster.offsets(2) == (7, 7)


def test_a_machine_that_crashes_loses_what_was_never_flushed() -> None:
    settings = {"zookeeper_session_timeout_ms": SESSION_MS, "log_flush_interval_messages": 3}
    with Emulated(1, 2, 3, **settings) as cluster:
        cluster.topic("orders", (2, 3)).send(3).run_ms(500).send(1).run_ms(5500).now_on()
        disk = cluster.world.cluster.hosts[2].disk
        cluster.do(Crash(2, "unflushed"))
        assert disk.logs[ORDERS_0].log_end_offset == 3
        cluster.run_ms(9000).do(Start(2)).run_ms(6000)
        assert cluster.offsets(2) == cluster.offsets(3) == (4, 4)


def test_a_stop_in_good_order_flushes() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).send(4).run_ms(500).do(Terminate(2)).run_ms(4000)
        cluster.do(Crash(2, "unflushed"))
        assert cluster.world.cluster.hosts[2].disk.logs[ORDERS_0].log_end_offset == 4


def test_a_new_disk_is_filled_from_the_leader() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).send(4).run_ms(500).do(Crash(2, "disk")).run_ms(9000)
        assert cluster.world.cluster.hosts[2].disk.logs == {}
        cluster.do(Start(2)).run_ms(6000)
        assert cluster.offsets(2) == (4, 4)


def test_5_4_without_an_epoch_a_follower_falls_back_to_its_high_watermark() -> None:
    """Only unflushed records before the checkpoint are lost."""
    settings = {"zookeeper_session_timeout_ms": SESSION_MS, "log_flush_interval_messages": 1}
    with Emulated(1, 2, 3, **settings) as cluster:
        cluster.topic("orders", (3, 2)).send(2).run_ms(6000)
        log = cluster.world.cluster.hosts[2].disk.logs[ORDERS_0]
        cluster.do(Kill(2))
        log.epochs.entries.clear()
        cluster.run_ms(9000).now_on().do(Start(2)).run_ms(6000)
        assert cluster.offsets(2) == (2, 2)


# -- controlled shutdown ---------------------------------------------------------------------------


def test_6_11_a_broker_that_stops_gives_its_leaderships_away_before() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(Terminate(2))
        cluster.run_until(lambda: cluster.seen(events.BrokerExited))
        it = cluster.state().leader_and_isr
        assert (it.leader, it.isr) == (3, (3,))


def test_6_11_the_controller_itself_stops_in_good_order() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (1, 2)).now_on().do(Terminate(1)).run_ms(5000)
        (elected,) = cluster.seen(events.ControllerElected)
        assert elected.broker in (2, 3)
        assert cluster.state().leader_and_isr.leader == 2
        assert [e.broker for e in cluster.seen(events.BrokerExited)] == [1]
        assert not failures(cluster)


def test_6_11_it_tries_three_times_and_then_stops_all_the_same() -> None:
    settings = {
        "zookeeper_session_timeout_ms": SESSION_MS,
        "controlled_shutdown_retry_backoff_ms": 1000,
        "request_timeout_ms": 2000,
        "controller_socket_timeout_ms": 2000,
    }
    with Emulated(1, 2, 3, **settings) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(CutLink(1, 2), Terminate(2)).run_ms(14_000)
        assert failures(cluster) == [(2, "controlled shutdown")] * 3
        assert [e.broker for e in cluster.seen(events.BrokerExited)] == [2]


def test_6_11_a_leader_whose_followers_are_out_of_sync_keeps_its_leadership_until_it_is_gone() -> (
    None
):
    settings = {
        "zookeeper_session_timeout_ms": SESSION_MS,
        "controlled_shutdown_retry_backoff_ms": 1000,
    }
    with Emulated(1, 2, 3, **settings) as cluster:
        cluster.topic("orders", (2, 3)).do(Kill(3)).run_ms(9000).now_on()
        cluster.do(Terminate(2)).run_ms(9000)
        handled = cluster.seen(events.ControllerEventProcessed, event="ControlledShutdown")
        assert len(handled) == 3
        assert [e.broker for e in cluster.seen(events.BrokerExited)] == [2]


# -- log directories -------------------------------------------------------------------------------


def test_1_8_replicas_on_a_directory_that_failed_go_offline_and_the_others_stay() -> None:
    with Emulated(1, 2, 3, log_dirs="/a,/b") as cluster:
        cluster.topic("orders", (2, 3)).topic("bills", (2, 3)).now_on()
        cluster.do(FailLogDir(2, 0)).send().run_ms(3000)
        (failed,) = cluster.seen(events.LogDirFailed)
        assert (failed.broker, failed.partitions) == (2, (ORDERS_0,))
        (offline,) = cluster.seen(events.ReplicasOffline)
        assert (offline.replica, offline.partitions) == (2, (ORDERS_0,))
        assert cluster.state().leader_and_isr.isr == (3,)
        assert cluster.state(BILLS_0).leader_and_isr.isr == (2, 3)
        assert ORDERS_0 not in cluster.node(2).replica_manager.partitions
        told = cluster.node(1).metadata_cache.partition(ORDERS_0)
        assert told is not None and told.offline_replicas == (2,)


def test_1_8_the_notification_is_deleted_and_the_next_failure_is_heard_as_well() -> None:
    with Emulated(1, 2, 3, log_dirs="/a,/b,/c") as cluster:
        cluster.topic("orders", (2, 3)).topic("bills", (2, 3)).topic("c", (2, 3)).now_on()
        cluster.do(FailLogDir(2, 0)).run_ms(7000).do(FailLogDir(2, 1)).run_ms(7000)
        assert [e.partitions for e in cluster.seen(events.ReplicasOffline)] == [
            (ORDERS_0,),
            (BILLS_0,),
        ]
        done = [
            (op.op, op.path[:36])
            for e in cluster.seen(events.ZkTransaction)
            for op in (e.ops or (e,))
            if (op.path or "").startswith("/log_dir_event_notification/")
        ]
        assert [op for op, _ in done] == ["create", "delete", "create", "delete"]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_1_8_the_write_that_fails_is_answered_with_a_storage_error(acks: str) -> None:
    with Emulated(1, 2, 3, log_dirs="/a,/b") as cluster:
        cluster.topic("orders", (2,)).now_on().do(FailLogDir(2)).send(acks=acks).run_ms(3000)
        assert cluster.seen(events.LogDirFailed)
        assert not cluster.seen(events.RecordsAppended)


def test_1_8_a_follower_that_cannot_write_stops_to_fetch_that_partition() -> None:
    with Emulated(1, 2, 3, log_dirs="/a,/b") as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(FailLogDir(3)).send().run_ms(3000)
        assert [e.broker for e in cluster.seen(events.LogDirFailed)] == [3]
        assert cluster.state().leader_and_isr.isr == (2,)


def test_1_8_a_broker_whose_only_directory_fails_halts() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=SESSION_MS) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(FailLogDir(2)).run_ms(14_000)
        assert [e.broker for e in cluster.seen(events.BrokerHalted)] == [2]
        assert cluster.state().leader_and_isr.leader == 3
        cluster.now_on().do(Start(2)).run_ms(4000)
        assert [e.reason for e in cluster.seen(events.BrokerHalted)] == [
            "no log directory can be written"
        ]
        cluster.do(RepairLogDir(2), Start(2)).run_ms(12_000)
        assert set(cluster.state().leader_and_isr.isr) == {2, 3}


def test_1_8_a_directory_that_was_repaired_serves_after_the_next_start() -> None:
    settings = {"zookeeper_session_timeout_ms": SESSION_MS, "log_dirs": "/a,/b"}
    with Emulated(1, 2, 3, **settings) as cluster:
        cluster.topic("orders", (2, 3)).do(FailLogDir(2)).run_ms(7000).do(RepairLogDir(2))
        cluster.run_ms(5000)
        assert cluster.state().leader_and_isr.isr == (3,), "it does not come back by itself"
        cluster.do(Terminate(2)).run_ms(4000).do(Start(2)).run_ms(6000)
        assert set(cluster.state().leader_and_isr.isr) == {2, 3}
