"""Brokers and topics that come and go, as the controller sees them (spec §6.4, §6.7 to §6.9)."""

from __future__ import annotations

import pytest

from emulator.kafka.controller.context import PartitionState
from tests.interaction.controlling import (
    CHANGED,
    CHILDREN,
    FENCE,
    ORDERS_0,
    ORDERS_1,
    Controlling,
    led_by,
    registration,
    state,
    topic,
)
from tests.interaction.playbook import (
    Incoming,
    after_ms,
    children,
    data,
    multi_failed,
    multi_ok,
    no_node,
    ok,
    reply,
    watch,
)
from zk.errors import Code

IDS, TOPICS = "/brokers/ids", "/brokers/topics"
BROKERS_CHANGED, TOPICS_CHANGED = watch(CHILDREN, IDS), watch(CHILDREN, TOPICS)


def lists_brokers(play: Controlling, *brokers: int, bounced: int = 0) -> Controlling:
    """The controller lists the registrations anew; a bounced one has a greater epoch."""
    play >> BROKERS_CHANGED << f"getChildren {IDS} W" >> children(*(str(b) for b in brokers))
    known = play.controller.brokers.watched
    for broker in sorted(brokers):
        play << f"getData {IDS}/{broker}" + " W" * (broker in known)
    for broker in sorted(brokers):
        play >> registration(broker, broker_epoch=900 if broker == bounced else 0)
    return play


# -- brokers ---------------------------------------------------------------------------------------


def test_a_broker_that_comes_hears_everything_and_the_others_hear_of_it() -> None:
    """UpdateMetadata precedes LeaderAndIsr, so that the new one knows its leaders (H28)."""
    with Controlling({ORDERS_0: led_by(1, (1, 2))}, live=(1, 2)) as play:
        (
            lists_brokers(play, 1, 2, 3)
            << f"exists {IDS}/3 W"
            << "to 1: UpdateMetadata live 1,2,3"
            << "to 2: UpdateMetadata live 1,2,3"
            << "to 3: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v5)"
            << "to 3: LeaderAndIsr (orders-0 leader 1 isr 1,2 v5)"
            << "to 1: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v5)"
            << "to 2: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v5)"
            << "to 3: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v5)"
            >> ok()
        )


@pytest.mark.parametrize(("profile", "live"), [("2.1", "1,3"), ("2.4", "1,2,3")])
def test_up_to_2_1_a_new_broker_does_not_hear_of_one_that_died_at_the_same_time(
    profile: str, live: str
) -> None:
    """controllerContext.liveBrokers = curBrokers, before anything is sent."""
    with Controlling({ORDERS_0: led_by(1, (1, 2))}, live=(1, 2), profile=profile) as play:
        lists_brokers(play, 1, 3)
        told = [line for line in play.said if line.startswith("to 3: UpdateMetadata")]
        assert told[0].startswith(f"to 3: UpdateMetadata live {live} (orders-0")
        play.forget()


@pytest.mark.parametrize("slow", ["brokers_compared", "add_broker", "brokers_started"])
def test_a_broker_that_comes_takes_its_time_before_it_is_told_and_watched(slow: str) -> None:
    with Controlling({}, live=(1,)) as play:
        play.take(**{slow: 20})
        lists_brokers(play, 1, 2)
        if slow != "brokers_started":
            play >> after_ms(19) >> after_ms(1)
        play << "to 1: UpdateMetadata live 1,2" << "to 2: UpdateMetadata live 1,2"
        if slow == "brokers_started":
            play >> after_ms(19) >> after_ms(1)
        play << f"exists {IDS}/2 W" >> ok()


def test_before_a_death_is_acted_on_its_send_thread_ends() -> None:
    with Controlling({ORDERS_0: led_by(3, (3, 1))}) as play:
        play.take(remove_broker=20)
        lists_brokers(play, 1, 2) >> after_ms(19) >> after_ms(1) << "getData orders-0"
        play.forget()


def test_new_partitions_take_their_time_before_they_are_created() -> None:
    with Controlling({}) as play:
        play.take(new_partitions=20)
        play >> TOPICS_CHANGED << f"getChildren {TOPICS} W" >> children("orders")
        play << f"getData {TOPICS}/orders W" >> topic((1,)) >> after_ms(19) >> after_ms(1)
        play << f"[{FENCE}, create {TOPICS}/orders/partitions]"
        play.forget()


def test_leaders_are_told_some_time_after_the_states_of_a_topic_were_created() -> None:
    with Controlling({}, live=(1,)) as play:
        play.take(states_created=20)
        play >> TOPICS_CHANGED << f"getChildren {TOPICS} W" >> children("orders")
        play << f"getData {TOPICS}/orders W" >> topic((1,))
        for created in ("orders/partitions", "orders/partitions/0"):
            play << f"[{FENCE}, create {TOPICS}/{created}]" >> multi_ok()
        play << f"[{FENCE}, create orders-0: leader 1, epoch 0, isr 1, controller 7]"
        play >> multi_ok() >> after_ms(19) >> after_ms(1)
        play << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1 v0) new"
        play.forget()


def test_what_it_is_told_comes_from_the_cache_even_where_zookeeper_has_newer() -> None:
    """H12: no state is read for it."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}, live=(1, 2)) as play:
        lists_brokers(play, 1, 2, 3) << f"exists {IDS}/3 W"
        sent = [line for line in play.said if "LeaderAndIsr" in line]
        assert sent == ["to 3: LeaderAndIsr (orders-0 leader 1 isr 1,2,3 v5)"]
        play.forget()


def test_when_a_broker_goes_its_partitions_are_elected_and_it_leaves_the_isr() -> None:
    leadership = {ORDERS_0: led_by(3, (3, 1, 2)), ORDERS_1: led_by(1, (1, 2, 3))}
    with Controlling(leadership) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            >> state(3, (3, 1, 2), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
            >> multi_ok(version=6)
            << "getData orders-0"
            << "getData orders-1"
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "to 1: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v6)"
            << "to 2: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v6)"
            >> state(1, (1, 2), version=6, epoch=5)
            >> state(1, (1, 2, 3), version=5)
            << f"[{FENCE}, set orders-1 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
            >> multi_ok(version=6)
        )
        for broker in (1, 2):
            told = "(orders-1 leader 1 isr 1,2 v6)"
            also = "(orders-0 leader 1 isr 1,2 v6)"
            both = {f"{told} {also}", f"{also} {told}"}
            lines = [line for line in play.said if line.startswith(f"to {broker}:")]
            assert {line.partition(" (")[0] for line in lines} == {
                f"to {broker}: LeaderAndIsr",
                f"to {broker}: UpdateMetadata live 1,2",
            }
            assert all(any(line.endswith(text) for text in both) for line in lines)
        play.forget()


def test_a_state_written_meanwhile_is_read_again_at_once_and_decided_anew() -> None:
    """BADVERSION: the leader had shrunk its ISR just before."""
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3))}) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            >> state(1, (1, 2, 3), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
            >> multi_failed(Code.OK, Code.BAD_VERSION)
            << "getData orders-0"
            >> state(1, (1, 3), version=6)
            << f"[{FENCE}, set orders-0 at v6: leader 1, epoch 5, isr 1, controller 7]"
            >> multi_ok(version=7)
        )
        play.forget()


def test_who_is_out_of_the_isr_already_is_not_written_again_but_the_cache_is_refreshed() -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3), decided_by=6)}) as play:
        lists_brokers(play, 1, 2) << "getData orders-0" >> state(1, (1, 2), version=6, decided_by=6)
        cached = play.controller.context.leadership[ORDERS_0]
        assert (cached.leader_and_isr.isr, cached.controller_epoch) == ((1, 2), 7)
        play.forget()


def test_a_state_that_a_newer_controller_decided_is_left_alone() -> None:
    with Controlling({ORDERS_0: led_by(3, (3, 1))}) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            >> state(3, (3, 1), version=5, decided_by=8)
            << "getData orders-0"
            >> state(3, (3, 1), version=5, decided_by=8)
        )
        assert play.controller.context.partition_states[ORDERS_0] is PartitionState.OFFLINE


def test_without_a_live_member_of_the_isr_a_partition_stays_without_leader() -> None:
    with Controlling({ORDERS_0: led_by(3, (3,))}) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            >> state(3, (3,), version=5)
            << "getData /config/topics/orders"
            >> no_node
            << "getData orders-0"
            >> state(3, (3,), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader -1, epoch 5, isr 3, controller 7]"
            >> multi_ok(version=6)
        )
        assert play.controller.context.partition_states[ORDERS_0] is PartitionState.OFFLINE
        play.forget()


@pytest.mark.parametrize(
    ("broker_default", "topic_config"),
    [
        ("true", no_node),
        ("false", data('{"version":1,"config":{"unclean.leader.election.enable":"true"}}')),
    ],
    ids=["by the broker's default", "by the topic's configuration"],
)
def test_if_unclean_elections_are_allowed_the_first_live_replica_leads_alone(
    broker_default: str, topic_config: Incoming
) -> None:
    unclean = {"unclean_leader_election_enable": broker_default}
    with Controlling({ORDERS_0: led_by(3, (3,))}, **unclean) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            >> state(3, (3,), version=5)
            << "getData /config/topics/orders"
            >> topic_config
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1, controller 7]"
            >> multi_ok(version=6)
            << "getData orders-0"
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1 v6)"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1 v6)"
            << "to 1: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1 v6)"
            << "to 2: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1 v6)"
        )


def test_a_broker_that_bounced_is_first_gone_and_then_there() -> None:
    """The same id with a greater broker epoch (2.2+; H13)."""
    with Controlling({ORDERS_0: led_by(3, (3, 1, 2))}) as play:
        (
            lists_brokers(play, 1, 2, 3, bounced=3)
            << "getData orders-0"
            >> state(3, (3, 1, 2), version=5)
            << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
            >> multi_ok(version=6)
            << "getData orders-0"
        )
        for broker in (1, 2):
            play << f"to {broker}: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            play << f"to {broker}: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v6)"
        play >> state(1, (1, 2), version=6, epoch=5) << f"exists {IDS}/3 W"
        for broker in (1, 2):
            play << f"to {broker}: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            play << f"to {broker}: UpdateMetadata live 1,2 (orders-0 leader 1 isr 1,2 v6)"
            play << f"to {broker}: UpdateMetadata live 1,2,3"
            play << f"to {broker}: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v6)"
        (
            play
            << "to 3: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v6)"
            << "to 3: LeaderAndIsr (orders-0 leader 1 isr 1,2 v6)"
            << "to 3: UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v6)"
            >> ok()
        )


def test_an_epoch_that_is_equal_is_no_bounce() -> None:
    with Controlling({ORDERS_0: led_by(3, (3, 1, 2))}) as play:
        lists_brokers(play, 1, 2, 3)


def test_garbage_in_a_registration_is_reported_and_counts_as_no_broker() -> None:
    with Controlling({}, live=(1, 2)) as play:
        (
            play
            >> BROKERS_CHANGED
            << f"getChildren {IDS} W"
            >> children("1", "2", "3")
            << f"getData {IDS}/1"
            << f"getData {IDS}/2"
            << f"getData {IDS}/3"
            >> registration(1)
            >> registration(2)
            >> data("{}")
            << f"malformed {IDS}/3"
        )


def test_when_no_partition_lost_its_leader_everybody_hears_who_is_left() -> None:
    with Controlling({}) as play:
        (
            lists_brokers(play, 1, 2)
            << "to 1: UpdateMetadata live 1,2"
            << "to 2: UpdateMetadata live 1,2"
        )


# -- topics ----------------------------------------------------------------------------------------


def test_a_new_topic_gets_its_states_and_then_its_members_are_told() -> None:
    with Controlling({}) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> topic((1, 2), (3, 9))
            << f"[{FENCE}, create {TOPICS}/orders/partitions]"
            >> multi_ok()
            << f"[{FENCE}, create {TOPICS}/orders/partitions/0]"
            << f"[{FENCE}, create {TOPICS}/orders/partitions/1]"
            >> multi_ok()
            >> multi_ok()
            << f"[{FENCE}, create orders-0: leader 1, epoch 0, isr 1,2, controller 7]"
            << f"[{FENCE}, create orders-1: leader 3, epoch 0, isr 3, controller 7]"
            >> multi_ok()
            >> multi_ok()
            << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1,2 v0) new"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v0) new"
            << "to 3: LeaderAndIsr (orders-1 leader 3 isr 3 v0) new"
        )
        for broker in (1, 2, 3):
            play << (
                f"to {broker}: UpdateMetadata live 1,2,3 "
                "(orders-0 leader 1 isr 1,2 v0) (orders-1 leader 3 isr 3 v0)"
            )


def test_a_state_that_is_there_already_is_not_announced() -> None:
    with Controlling({}) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> topic((1, 2))
            << f"[{FENCE}, create {TOPICS}/orders/partitions]"
            >> multi_failed(Code.OK, Code.NODE_EXISTS)
            << f"[{FENCE}, create {TOPICS}/orders/partitions/0]"
            >> multi_failed(Code.OK, Code.NODE_EXISTS)
            << f"[{FENCE}, create orders-0: leader 1, epoch 0, isr 1,2, controller 7]"
            >> multi_failed(Code.OK, Code.NODE_EXISTS)
        )
        assert play.controller.context.partition_states[ORDERS_0] is PartitionState.NEW


def test_partitions_without_a_live_replica_wait_for_one() -> None:
    with Controlling({}, live=(1, 2)) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> topic((3,))
        )
        assert play.controller.context.partition_states[ORDERS_0] is PartitionState.NEW


def test_partitions_that_were_added_to_a_topic_are_created_and_no_others() -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2))}) as play:
        play.controller._topics.watch(["orders"])
        (
            play
            >> watch(CHANGED, f"{TOPICS}/orders")
            << f"getData {TOPICS}/orders W"
            >> topic((1, 2), (2, 1))
            << f"[{FENCE}, create {TOPICS}/orders/partitions]"
            >> multi_failed(Code.OK, Code.NODE_EXISTS)
            << f"[{FENCE}, create {TOPICS}/orders/partitions/1]"
            >> multi_ok()
            << f"[{FENCE}, create orders-1: leader 2, epoch 0, isr 2,1, controller 7]"
            >> multi_ok()
        )
        play.forget()


@pytest.mark.parametrize("garbage", ["", "[]", '{"partitions":{"x":[1]}}', '{"partitions":7}'])
def test_garbage_in_a_topic_is_reported_and_the_topic_has_no_partitions(garbage: str) -> None:
    with Controlling({}) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> data(garbage)
            << f"malformed {TOPICS}/orders"
        )


def test_the_check_of_the_controllers_epoch_stops_a_creation() -> None:
    with Controlling({}) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> topic((1, 2))
            << f"[{FENCE}, create {TOPICS}/orders/partitions]"
            >> multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
            << "exists /controller W"
            >> ok()
            << "getData /controller W"
            >> no_node
            << "resigned"
        )


def test_a_creation_that_fails_otherwise_is_logged_and_the_controller_goes_on() -> None:
    with Controlling({}) as play:
        (
            play
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children("orders")
            << f"getData {TOPICS}/orders W"
            >> reply(Code.NO_AUTH)
            << f"TopicChange failed: ZooKeeperError: NO_AUTH for {TOPICS}/orders"
            >> TOPICS_CHANGED
            << f"getChildren {TOPICS} W"
            >> children()
        )


def test_partitions_added_to_a_topic_that_is_going_are_taken_back() -> None:
    """Those whose znodes exist are written back, as the cache has them."""
    with Controlling({ORDERS_0: led_by(1, (1, 2))}, replicas=(1, 2)) as play:
        play.controller.context.topics_to_be_deleted["orders"] = None
        play.controller._topics.watch(["orders"])
        play >> watch(CHANGED, f"{TOPICS}/orders") << f"getData {TOPICS}/orders W"
        play >> topic((1, 2), (2, 1)) << f"getChildren {TOPICS}/orders/partitions"
        play >> children("0")
        assert {n: a.replicas for n, a in play.topic_written().items()} == {0: (1, 2)}
        play << f"[{FENCE}, set {TOPICS}/orders at v-1]" >> multi_ok()
        play >> watch(CHANGED, f"{TOPICS}/orders") << f"getData {TOPICS}/orders W"
        play >> topic((1, 2))
