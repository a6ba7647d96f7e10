"""Section 7 of the spec: the ISR through the controller (AlterIsr), on whole clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from emulator.invariants.base import check
from emulator.invariants.known.base import recognise
from emulator.scenario.actions.admin import Reassign
from emulator.scenario.actions.clients import Produce
from emulator.scenario.actions.life import Kill, Start, Terminate
from emulator.scenario.actions.pause import Pause, Resume
from emulator.trace import events
from tests.spec.emulated import Emulated

RPC = ("2.7", "2.8", "3.3")
EVERYBODY = (1, 2, 3)


def led_by_2(profile: str = "2.7", **settings: object) -> Emulated:
    """orders-0 is led by 2; 1 is controller; records come in."""
    cluster = Emulated(profile=profile, **settings)
    cluster.topic("orders", (2, 1, 3)).do(Produce("orders", (0,), 20.0))
    return cluster.run_ms(1000).now_on()


def without_3(profile: str = "2.7", **settings: object) -> Emulated:
    """Broker 3 is paused until it is out of the ISR."""
    cluster = led_by_2(profile, **settings).do(Pause(3))
    cluster.run_until(lambda: cluster.isr_history() == [(2, 1)])
    return cluster


@pytest.mark.parametrize("profile", RPC)
def test_7_6_the_controller_writes_the_state_fenced_and_with_its_own_epoch(profile: str) -> None:
    with without_3(profile) as cluster:
        state = cluster.state()
        it = state.leader_and_isr
        assert (it.leader, it.isr, it.leader_epoch, it.zk_version) == (2, (2, 1), 0, 1)
        assert state.controller_epoch == 1
        (write,) = [
            e
            for e in cluster.seen(events.ZkTransaction)
            if any((op.path or "").endswith("partitions/0/state") for op in e.ops)
        ]
        assert [op.op for op in write.ops] == ["check", "setData"] and write.broker == 1


@pytest.mark.parametrize("profile", RPC)
def test_7_6_no_notification_is_made_and_all_metadata_shows_it_at_once(profile: str) -> None:
    with without_3(profile) as cluster:
        cluster.run_ms(500)
        assert {cluster.cached_isr(b) for b in (1, 2)} == {(2, 1)}
        cluster.run_ms(8000)
        assert not cluster.seen(events.IsrChangeNotified)
        assert not cluster.seen(events.IsrChangeHeld)


def test_7_6_the_controllers_cache_knows_before_the_leader() -> None:
    with without_3() as cluster:
        (cached,) = cluster.seen(events.ControllerCacheUpdated)
        (known,) = cluster.seen(events.IsrUpdated)
        assert cached.why == "AlterIsr" and cached.zk_version == 1
        assert cached.t < known.t


def test_7_2_a_proposal_waits_for_the_next_tick_50_ms_at_most() -> None:
    with without_3() as cluster:
        cluster.do(Resume(3)).run_until(lambda: len(cluster.isr_history()) == 2)
        sent = [e for e in cluster.seen(events.AlterIsrSent) if e.broker == 2]
        assert len(sent) == 2
        proposed = cluster.seen(events.AlterIsrProposed)
        assert 0 <= sent[1].t - proposed[1].t <= 50_000


@pytest.mark.parametrize("profile", ["2.8", "3.3"])
def test_7_2_from_2_8_on_a_proposal_leaves_at_once(profile: str) -> None:
    with without_3(profile) as cluster:
        (proposed,) = cluster.seen(events.AlterIsrProposed)
        (asked,) = cluster.seen(events.AlterIsrSent)
        assert asked.t - proposed.t < 20_000


def test_7_6_without_a_controller_that_answers_a_change_waits() -> None:
    with led_by_2() as cluster:
        cluster.do(Pause(1), Pause(3)).run_ms(6000)
        assert [e.isr for e in cluster.seen(events.AlterIsrProposed)] in ([(2,)], [(2, 1)])
        assert cluster.isr_history() == []
        cluster.do(Resume(1), Resume(3))
        cluster.run_until(lambda: set(cluster.state().leader_and_isr.isr) == set(EVERYBODY))


def test_7_4_a_success_completes_a_reassignment_without_a_watch_on_the_state() -> None:
    with Emulated(profile="2.7") as cluster:
        cluster.topic("orders", (1, 2)).send(5).run_ms(500).now_on()
        cluster.do(Reassign("orders", 0, (2, 3)))
        cluster.run_until(lambda: set(cluster.state().leader_and_isr.isr) == {2, 3})
        cluster.run_ms(1000)
        watched = [
            e
            for e in cluster.seen(events.ZkRequest)
            if (e.path or "").endswith("partitions/0/state") and e.watch
        ]
        assert not watched


def test_7_2_a_warm_shrink_goes_out_milliseconds_later_since_both_timers_begin_together() -> None:
    """As recorded: 3 and 4 ms from the log's line to the state's write, after a process's first."""
    with without_3() as cluster:
        cluster.do(Resume(3)).run_until(lambda: len(cluster.isr_history()) == 2)
        cluster.do(Pause(3)).run_until(lambda: len(cluster.isr_history()) == 3)
        decided = [e.t for e in cluster.seen(events.IsrUpdateStarted) if e.change == "shrink"]
        sent = [e.t for e in cluster.seen(events.AlterIsrSent)]
        assert 0 < sent[-1] - decided[-1] < 6000 < sent[0] - decided[0]


# -- a cluster that is upgraded broker by broker ---------------------------------------------------


def converged(cluster: Emulated) -> bool:
    held = {cluster.cached_isr(b) for b in EVERYBODY}
    return len(held) == 1 and set(held.pop()) == set(EVERYBODY)


def test_a_leader_of_2_6_under_a_controller_of_2_7_writes_itself_and_is_read() -> None:
    with led_by_2("2.7", broker_profiles={2: "2.6"}) as cluster:
        cluster.do(Pause(3)).run_until(lambda: cluster.isr_history() == [(2, 1)])
        assert not cluster.seen(events.AlterIsrSent)
        cluster.do(Resume(3)).run_until(lambda: cluster.seen(events.IsrChangeCleared))
        cluster.run_until(lambda: converged(cluster))


@contextmanager
def asking_a_controller_of_2_6(profile: str) -> Iterator[Emulated]:
    """Leader 2 runs `profile` before its controllers do, and wants 3 out and in again; then they
    are upgraded too."""
    versions = {2: profile}
    with led_by_2("2.6", broker_profiles=versions, zookeeper_session_timeout_ms=6000) as cluster:
        cluster.do(Pause(3)).run_ms(5000).do(Resume(3)).run_ms(2000)
        refused = cluster.seen(events.AlterIsrRefused)
        assert refused and {e.error for e in refused} == {"UNSUPPORTED_VERSION"}
        assert cluster.isr_history() == []
        cluster.do(Terminate(1)).run_ms(5000).do(Start(1, profile=profile)).run_ms(5000)
        cluster.do(Terminate(3)).run_ms(5000).do(Start(3, profile=profile)).run_ms(5000)
        yield cluster
        found = check(cluster.events)
        assert {recognise(one, cluster.events) for one in found} <= {"ISR member not validated"}


def test_a_leader_of_2_8_under_a_controller_of_2_6_waits_until_that_is_upgraded_too() -> None:
    with asking_a_controller_of_2_6("2.8") as cluster:
        cluster.run_until(lambda: converged(cluster))


def test_a_leader_of_2_7_asks_the_same_all_the_while_and_its_answer_ends_a_newer_question() -> None:
    """The old question is of an epoch that is over; with it goes what was proposed meanwhile
    (KAFKA-12686): pending until a LeaderAndIsr of another epoch, which only its leader's own end
    brings, since nobody else is in the ISR."""
    with asking_a_controller_of_2_6("2.7") as cluster:
        decided = cluster.seen(events.AlterIsrDecided)
        assert [(e.proposed, e.error) for e in decided] == [((2, 1), "FENCED_LEADER_EPOCH")]
        cluster.run_ms(8000)
        assert not converged(cluster)
        cluster.do(Kill(2)).run_ms(8000).do(Start(2)).run_ms(2000)
        cluster.run_until(lambda: converged(cluster))
