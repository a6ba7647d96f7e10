"""Election, fail-over and resignation, request by request (spec §2.7, §2.12, §6.2, §6.3)."""

from __future__ import annotations

import pytest

from tests.interaction.controlling import (
    CREATED,
    DELETED,
    ORDERS_0,
    Controlling,
    controller_is,
    led_by,
    registration,
    state,
    topic,
)
from tests.interaction.playbook import (
    after_ms,
    children,
    data,
    lost,
    multi_failed,
    multi_ok,
    no_node,
    ok,
    reply,
    session_is,
    thread,
    watch,
)
from zk.errors import Code, SessionExpired
from zk.ops import SessionState

RUN = "[create ephemeral /controller: broker 1, set /controller_epoch at v{}: {}]"


def electing() -> Controlling:
    return Controlling(active=False)


def started(play: Controlling) -> Controlling:
    """The controller thread has started: it watches /controller, which does not exist."""
    play.controller.startup()
    play.settle()
    (
        play
        << "exists /controller W"
        >> no_node
        << "getData /controller W"
        >> no_node
        << "getData /controller_epoch"
    )
    return play


def fails_over_at_once(play: Controlling) -> None:
    """The first requests of a fail-over show that the election was won."""
    play << "exists /admin/preferred_replica_election W"


# -- the election ----------------------------------------------------------------------------------


def test_the_first_controller_ever_creates_the_epoch_and_is_controller_in_epoch_1() -> None:
    with electing() as play:
        (
            started(play)
            >> no_node
            << "create /controller_epoch: 0"
            >> ok()
            << RUN.format(0, 1)
            >> multi_ok(version=1)
            << "controller in epoch 1, v1"
        )
        fails_over_at_once(play)


def test_a_later_one_raises_the_epoch_that_it_read_at_the_version_that_it_read() -> None:
    with electing() as play:
        (
            started(play)
            >> data("7", version=12)
            << RUN.format(12, 8)
            >> multi_ok(version=13)
            << "controller in epoch 8, v13"
        )
        fails_over_at_once(play)


def test_an_epoch_that_somebody_else_just_created_is_read_again() -> None:
    with electing() as play:
        (
            started(play)
            >> no_node
            << "create /controller_epoch: 0"
            >> reply(Code.NODE_EXISTS)
            << "getData /controller_epoch"
            >> data("3", version=3)
            << RUN.format(3, 4)
            >> multi_ok(version=4)
            << "controller in epoch 4, v4"
        )
        fails_over_at_once(play)


def test_who_finds_a_controller_does_not_run() -> None:
    with electing() as play:
        play.controller.startup()
        play.settle()
        (play << "exists /controller W" >> ok() << "getData /controller W" >> controller_is(2))
        assert not play.controller.is_active


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY),
        (Code.OK, Code.BAD_VERSION),
    ],
)
def test_who_loses_to_another_looks_twice_and_stays_a_broker(first: Code, second: Code) -> None:
    with electing() as play:
        (
            started(play)
            >> data("7", version=12)
            << RUN.format(12, 8)
            >> multi_failed(first, second)
            << "getData /controller W"
            >> controller_is(2)
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> controller_is(2)
        )
        assert not play.controller.is_active


def test_whose_reply_was_lost_recognises_its_own_election() -> None:
    with electing() as play:
        (
            started(play)
            >> data("7", version=12)
            << RUN.format(12, 8)
            >> lost
            << RUN.format(12, 8)
            >> multi_failed(Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY)
            << "getData /controller W"
            >> controller_is(1)
            << "getData /controller_epoch"
            >> data("8", version=13)
            << "controller in epoch 8, v13"
        )
        fails_over_at_once(play)


def test_ones_own_id_with_anothers_epoch_is_a_lost_election() -> None:
    with electing() as play:
        (
            started(play)
            >> data("7", version=12)
            << RUN.format(12, 8)
            >> multi_failed(Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY)
            << "getData /controller W"
            >> controller_is(1)
            << "getData /controller_epoch"
            >> data("9", version=14)
            << "exists /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
        )
        assert not play.controller.is_active


def test_a_node_that_went_away_meanwhile_is_a_lost_election_and_the_watch_sees_to_the_rest() -> (
    None
):
    with electing() as play:
        (
            started(play)
            >> data("7", version=12)
            << RUN.format(12, 8)
            >> multi_failed(Code.NODE_EXISTS, Code.RUNTIME_INCONSISTENCY)
            << "getData /controller W"
            >> no_node
            << "exists /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
            >> watch(DELETED, "/controller")
            << "exists /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
            << "getData /controller W"
            >> controller_is(2)
        )


def test_when_the_controller_goes_who_hears_of_it_looks_resigns_and_runs() -> None:
    with electing() as play:
        play.controller.startup()
        play.settle()
        (
            play
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> controller_is(2)
            >> watch(DELETED, "/controller")
            << "exists /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
            << "getData /controller_epoch"
            >> data("7", version=7)
            << RUN.format(7, 8)
            >> multi_ok(version=8)
            << "controller in epoch 8, v8"
        )
        fails_over_at_once(play)


# -- fail-over -------------------------------------------------------------------------------------


def test_fail_over_asks_and_tells_in_this_order() -> None:
    """Watches first; notifications deleted unread before any state is read (H10)."""
    fence = "check /controller_epoch v13"
    with electing() as play:
        started(play) >> data("7", version=12) << RUN.format(12, 8) >> multi_ok(version=13)
        (
            play
            << "controller in epoch 8, v13"
            << "exists /admin/preferred_replica_election W"
            >> no_node
            << "exists /admin/reassign_partitions W"
            >> no_node
            << "getChildren /log_dir_event_notification W"
            >> children("log_dir_event_0000000000")
            << f"[{fence}, delete /log_dir_event_notification/log_dir_event_0000000000]"
            >> multi_ok()
            << "getChildren /isr_change_notification W"
            >> children("isr_change_0000000004")
            << f"[{fence}, delete /isr_change_notification/isr_change_0000000004]"
            >> multi_ok()
            << "getChildren /brokers/ids W"
            >> children("2", "1")
            << "getData /brokers/ids/1"
            << "getData /brokers/ids/2"
            >> registration(1)
            >> registration(2)
            << "getChildren /brokers/topics W"
            >> children("orders")
            << "getData /brokers/topics/orders W"
            >> topic((1, 2))
            << "exists /brokers/ids/1 W"
            >> ok()
            << "exists /brokers/ids/2 W"
            >> ok()
            << "getData orders-0"
            >> state(1, (1, 2), version=5)
            << "getChildren /admin/delete_topics W"
            >> children()
            << "exists /admin/reassign_partitions W"
            << "to 1: UpdateMetadata live 1,2"
            << "to 2: UpdateMetadata live 1,2"
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1,2 v5)"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v5)"
            << "to 1: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v5)"
            << "to 2: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v5)"
            >> no_node
            << "getData /admin/preferred_replica_election W"
            >> no_node
            << f"[{fence}, delete /admin/preferred_replica_election]"
            >> multi_failed(Code.OK, Code.NO_NODE)
            << "exists /admin/preferred_replica_election W"
            >> no_node
        )


PARTS = ("start", "brokers", "topics", "state_machines", "update_metadata", "elections", "end")


@pytest.mark.parametrize("slow", PARTS)
def test_a_fail_over_takes_its_time_between_these_requests(slow: str) -> None:
    fence = "check /controller_epoch v13"
    with electing() as play:
        play.take(**{f"failover.{slow}": 20})

        def passes(*parts: str) -> None:
            """Nothing is requested before the time of these parts is over."""
            for part in parts:
                if part == slow:
                    play >> after_ms(19) >> after_ms(1)

        started(play) >> data("7", version=12) << RUN.format(12, 8) >> multi_ok(version=13)
        play << "controller in epoch 8, v13"
        passes("start")
        play << "exists /admin/preferred_replica_election W" >> no_node
        play << "exists /admin/reassign_partitions W" >> no_node
        play << "getChildren /log_dir_event_notification W" >> children()
        play << "getChildren /isr_change_notification W" >> children()
        play << "getChildren /brokers/ids W" >> children("1") << "getData /brokers/ids/1"
        play >> registration(1)
        passes("brokers")
        play << "getChildren /brokers/topics W" >> children()
        passes("topics")
        play << "exists /brokers/ids/1 W" >> ok() << "getChildren /admin/delete_topics W"
        play >> children()
        passes("state_machines", "update_metadata")
        play << "exists /admin/reassign_partitions W" << "to 1: UpdateMetadata live 1" >> no_node
        passes("elections")
        play << "getData /admin/preferred_replica_election W" >> no_node
        passes("elections")
        play << f"[{fence}, delete /admin/preferred_replica_election]"
        play >> multi_failed(Code.OK, Code.NO_NODE)
        passes("end")
        play << "exists /admin/preferred_replica_election W" >> no_node


def test_what_was_led_by_the_broker_that_died_is_elected_anew_with_a_higher_epoch() -> None:
    fence = "check /controller_epoch v13"
    with electing() as play:
        started(play) >> data("7", version=12) << RUN.format(12, 8) >> multi_ok(version=13)
        play << "controller in epoch 8, v13" << "exists /admin/preferred_replica_election W"
        play >> no_node << "exists /admin/reassign_partitions W" >> no_node
        play << "getChildren /log_dir_event_notification W" >> children()
        play << "getChildren /isr_change_notification W" >> children()
        play << "getChildren /brokers/ids W" >> children("1") << "getData /brokers/ids/1"
        play >> registration(1) << "getChildren /brokers/topics W" >> children("orders")
        play << "getData /brokers/topics/orders W" >> topic((2, 1)) << "exists /brokers/ids/1 W"
        (
            play
            >> ok()
            << "getData orders-0"
            >> state(2, (2, 1), version=5)
            << "getChildren /admin/delete_topics W"
            >> children()
            << "getData orders-0"
            << "to 1: UpdateMetadata live 1"
            << "to 1: LeaderAndIsr (orders-0 leader 2 isr 2,1 v5)"
            << "to 1: UpdateMetadata live 1 (orders-0 leader 2 isr 2,1 v5)"
            >> state(2, (2, 1), version=5)
            << f"[{fence}, set orders-0 at v5: leader -1, epoch 5, isr 1, controller 8]"
            >> multi_ok(version=6)
            << "getData orders-0"
            << "to 1: LeaderAndIsr (orders-0 leader -1 isr 1 v6)"
            << "to 1: UpdateMetadata live 1 (orders-0 leader -1 isr 1 v6)"
            >> state(-1, (1,), version=6, epoch=5, decided_by=8)
            << f"[{fence}, set orders-0 at v6: leader 1, epoch 6, isr 1, controller 8]"
            >> multi_ok(version=7)
            << "exists /admin/reassign_partitions W"
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1 v7)"
            << "to 1: UpdateMetadata live 1 (orders-0 leader 1 isr 1 v7)"
        )


def test_a_fail_over_that_goes_wrong_gives_the_controllership_up() -> None:
    with electing() as play:
        started(play) >> data("7", version=12) << RUN.format(12, 8) >> multi_ok(version=13)
        (
            play
            << "controller in epoch 8, v13"
            << "exists /admin/preferred_replica_election W"
            >> reply(Code.NO_AUTH)
            << ("election failed: ZooKeeperError: NO_AUTH for /admin/preferred_replica_election")
            << "getData /controller W"
            >> controller_is(1)
            << "resigned"
            << "[check /controller_epoch v13, delete /controller]"
            >> multi_ok()
        )
        assert not play.controller.is_active


def test_a_fail_over_that_meets_a_newer_controller_resigns_and_deletes_nothing() -> None:
    with electing() as play:
        started(play) >> data("7", version=12) << RUN.format(12, 8) >> multi_ok(version=13)
        play << "controller in epoch 8, v13" << "exists /admin/preferred_replica_election W"
        (
            play
            >> no_node
            << "exists /admin/reassign_partitions W"
            >> no_node
            << "getChildren /log_dir_event_notification W"
            >> children("log_dir_event_0000000000")
            << "[check /controller_epoch v13, delete /log_dir_event_notification/"
            "log_dir_event_0000000000]"
            >> multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> controller_is(3)
            << "resigned"
        )


# -- resignation -----------------------------------------------------------------------------------


def test_a_controller_that_sees_another_one_resigns_and_is_deaf_from_then_on() -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}) as play:
        (
            play
            >> watch(CREATED, "/controller")
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> controller_is(2)
            << "resigned"
        )
        context = play.controller.context
        assert (context.epoch, context.leadership, context.live_brokers) == (0, {}, {})
        assert play.controller.parts.channels.threads == {}
        play >> watch(CREATED, "/isr_change_notification")


def test_garbage_in_the_controllers_node_is_reported_and_counts_as_nobody() -> None:
    with electing() as play:
        play.controller.startup()
        play.settle()
        (
            play
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> data("garbage")
            << "malformed /controller"
            << "getData /controller_epoch"
        )


def test_a_controller_whose_session_ends_while_it_waits_does_not_act_under_the_next_one() -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}) as play:
        write = play.zk.update_leader_and_isr({ORDERS_0: led_by(1, (1, 2)).leader_and_isr}, 7, 3)
        (
            play
            >> thread("an election", write)
            << (
                "[check /controller_epoch v3, set orders-0 at v5: "
                "leader 1, epoch 4, isr 1,2, controller 7]"
            )
            >> session_is(SessionState.DISCONNECTED)
            >> lost
        )
        play.zookeeper.connects = False
        play >> session_is(SessionState.EXPIRED)
        failed = {ORDERS_0: SessionExpired()}
        play << f"an election: UpdateLeaderAndIsrResult(finished={failed}, to_retry=[])"
        play << "closeSession"
