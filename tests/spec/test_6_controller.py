"""Section 6 of the spec: the controller, from its boot to brokers that come and go."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.life import Kill, Terminate
from emulator.scenario.actions.link import CutLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from tests.spec.emulated import LAG_MS, ORDERS_0, Emulated


def test_6_2_the_first_broker_is_the_controller_in_epoch_1() -> None:
    with Emulated(3, 1, 2) as cluster:
        (elected,) = cluster.seen(events.ControllerElected)
        assert (elected.broker, elected.controller_epoch, elected.epoch_zk_version) == (3, 1, 1)


def test_6_7_a_new_partition_is_led_by_its_first_live_replica_with_all_live_ones_in_sync() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (2, 3, 1))
        state = cluster.state()
        it = state.leader_and_isr
        assert (it.leader, it.isr, it.leader_epoch, it.zk_version) == (2, (2, 3, 1), 0, 0)
        assert state.controller_epoch == 1


def test_6_7_replicas_that_are_not_there_are_left_out_of_a_new_isr() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (1, 2)).do(Kill(2)).run_ms(9000).now_on()
        cluster.do(CreateTopic("bills", ((2, 3, 1),))).run_ms(3000)
        added = cluster.state(ORDERS_0._replace(topic="bills")).leader_and_isr
        assert (added.leader, added.isr) == (3, (3, 1))


def test_6_6_an_isr_change_is_told_to_all_live_brokers_and_to_nobody_as_leader_and_isr() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (2, 1, 3)).do(Produce("orders", (0,), 20.0)).run_ms(1000).now_on()
        cluster.do(Pause(3)).run_ms(4000).do(Resume(3))
        cluster.run_until(lambda: cluster.seen(events.IsrChangeCleared))
        cluster.run_ms(300)
        sent = cluster.seen(events.ControlRequestSent)
        assert sorted((e.to, e.request) for e in sent) == [
            (1, "UpdateMetadata"),
            (2, "UpdateMetadata"),
            (3, "UpdateMetadata"),
        ]
        assert {cluster.cached_isr(b) for b in (1, 2, 3)} == {(2, 1, 3)}


def test_6_6_the_update_metadata_is_queued_before_the_notification_goes() -> None:
    with Emulated() as cluster:
        cluster.topic("orders", (2, 1, 3)).now_on().do(Pause(3)).send().run_ms(12_000)
        (cleared,) = cluster.seen(events.IsrChangeCleared)
        told = [e for e in cluster.seen(events.ControllerCacheUpdated) if e.why == "notification"]
        assert [e.isr for e in told] == [(2, 1)]
        assert told[0].seq < cleared.seq


def test_6_1_one_event_at_a_time_while_the_controller_waits_for_zookeeper_others_queue() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=30_000) as cluster:
        cluster.now_on()
        cluster.do(CreateTopic("a", ((1, 2),))).run_ms(15).do(Pause(None, "zookeeper"))
        cluster.run_ms(3000).do(Resume(None, "zookeeper")).run_ms(3000)
        processed = cluster.seen(events.ControllerEventProcessed)
        spans = [(e.t - e.took_us, e.t) for e in processed]
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_6_10_a_send_thread_tries_for_ever_and_keeps_the_order() -> None:
    with Emulated(1, 2, 3, request_timeout_ms=2000, controller_socket_timeout_ms=2000) as cluster:
        cluster.now_on().do(CutLink(1, 3))
        for name in ("a", "b"):
            cluster.do(CreateTopic(name, ((2, 3),))).run_ms(6000)
        tried = cluster.seen(events.ControlRequestSent, to=3)
        assert max(e.attempt for e in tried) >= 1
        assert not cluster.seen(events.BecomesFollower, broker=3)
        cluster.do(HealLink(1, 3)).run_ms(8000)
        followed = [e.partition.topic for e in cluster.seen(events.BecomesFollower, broker=3)]
        assert followed == ["a", "b"]
        others = [e.partition.topic for e in cluster.seen(events.BecomesLeader, broker=2)]
        assert others == ["a", "b"]


def test_6_6_a_paused_controller_leaves_everybody_with_old_metadata_until_it_is_back() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=40_000) as cluster:
        cluster.topic("orders", (2, 3, 1)).do(Produce("orders", (0,), 20.0)).run_ms(1000)
        cluster.do(Pause(1)).run_ms(4 * LAG_MS + 8000)
        assert cluster.state().leader_and_isr.isr == (2, 3)
        assert cluster.cached_isr(2) == cluster.cached_isr(3) == (2, 3, 1)
        assert len(cluster.seen(events.IsrChangeNotified)) == 1
        cluster.do(Resume(1)).run_ms(1000)
        assert cluster.cached_isr(3) in ((2, 3), (2, 3, 1))
        cluster.run_ms(10_000)
        assert cluster.cached_isr(2) == cluster.cached_isr(3) == cluster.hosted(2).isr


@pytest.mark.parametrize("seed", [1, 2])
def test_6_4_a_broker_that_dies_loses_its_leaderships_with_a_higher_epoch(seed: int) -> None:
    with Emulated(1, 2, 3, seed=seed, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (3, 2, 1)).now_on().do(Kill(3)).run_ms(9000)
        it = cluster.state().leader_and_isr
        assert (it.leader, it.leader_epoch, it.isr) == (2, 1, (2, 1))
        assert cluster.hosted(2).is_leader
        assert not cluster.hosted(1).is_leader


def test_6_4_the_isr_without_a_broker_that_died_is_sent_to_all_live_replicas() -> None:
    """Not to its leader alone (KAFKA-1188)."""
    with Emulated(1, 2, 3, 4, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (2, 3, 4)).now_on().do(Kill(3)).run_ms(9000)
        assert cluster.state().leader_and_isr.isr == (2, 4)
        told = [e.to for e in cluster.seen(events.ControlRequestSent, request="LeaderAndIsr")]
        assert sorted(set(told) - {3}) == [2, 4]


def test_6_2_a_new_controller_has_the_next_epoch_and_tells_everybody() -> None:
    with Emulated(1, 2, 3, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.topic("orders", (2, 3)).now_on().do(Kill(1)).run_ms(9000)
        (elected,) = cluster.seen(events.ControllerElected)
        assert elected.controller_epoch == 2
        assert elected.broker in (2, 3)
        told = {e.broker for e in cluster.seen(events.MetadataCacheUpdated, sender_epoch=2)}
        assert told == {2, 3}
        assert cluster.state().controller_epoch == 1, "what did not change keeps its decider"


def test_6_11_a_broker_that_stops_closes_its_sockets_first_and_fetches_for_a_while() -> None:
    """KafkaServer.scala@2.6.3 shutdown: sockets, handlers, scheduler; coordinators; then the
    fetchers; the session last."""
    with Emulated(1, 2, 3, controlled_shutdown_enable="false") as cluster:
        cluster.topic("orders", (2, 3), (3, 2)).now_on().do(Terminate(2))
        network, process = cluster.world.network, cluster.node(2).context.process
        cluster.run_until(lambda: network.connections_of(process) == 0)
        cluster.now_on().run_until(lambda: cluster.seen(events.FetcherStopped, broker=2))
        assert len(cluster.seen(events.FetchSent, broker=2)) > 0
        assert not cluster.seen(events.FollowerStateUpdated, broker=2), "nobody fetches from it"
        assert not cluster.seen(events.ZkTransaction, op="closeSession")
        cluster.run_until(lambda: cluster.seen(events.ZkTransaction, op="closeSession"))
        assert cluster.run_until(lambda: cluster.node(2).exited) < 3000
