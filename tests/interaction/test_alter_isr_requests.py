"""How proposals travel: what one request holds, when it goes out again, and who is asked; and what
2.8 makes of the ZooKeeper path (spec §7.2, §7.6)."""

from __future__ import annotations

import pytest

from emulator.kafka.model.errors import Errors
from emulator.trace.values import TopicPartition
from tests.interaction.asking import (
    ASKS,
    EXPANSION,
    altered,
    answer,
    answer_to_all,
    fetch_3,
    pending,
    refused,
)
from tests.interaction.hosting import (
    LIVE,
    ORDERS_0,
    ORDERS_1,
    Hosting,
    fetch,
    leading,
    produce,
    state_of,
    update_metadata,
)
from tests.interaction.playbook import (
    Incoming,
    Playbook,
    after_ms,
    at_once,
    breaks,
    data,
    ok,
    reply,
)
from zk.errors import Code

# -- requests --------------------------------------------------------------------------------------


def two_partitions(profile: str = "2.7") -> Hosting:
    """A leader of two partitions, both without 3."""
    states = (state_of(isr=(1, 2)), state_of(ORDERS_1, isr=(1, 2)))
    return Hosting(*states, records=10, profile=profile)


def fetch_3_of(partition: TopicPartition) -> Incoming:
    return fetch(3, at=10, max_wait_ms=0, partition=partition)


BOTH = ASKS + " (orders-1 epoch 4 isr 1,2,3 for v5)"


def both_asked() -> Playbook:
    play = two_partitions() >> fetch_3_of(ORDERS_0) << EXPANSION << "fetch-3: nothing, hw 10"
    play >> fetch_3_of(ORDERS_1) << EXPANSION << "fetch-3: nothing, hw 10"
    return play >> after_ms(50) << BOTH


@pytest.mark.parametrize("slow", ["alter_isr_queued", "alter_isr_answered"])
def test_the_send_thread_takes_its_time_before_the_request_and_after_its_answer(slow: str) -> None:
    with two_partitions() as play:
        play.take(**{slow: 20})
        play >> fetch_3_of(ORDERS_0) << EXPANSION << "fetch-3: nothing, hw 10" >> after_ms(50)
        if slow == "alter_isr_queued":
            play >> after_ms(19) >> after_ms(1)
        play << ASKS >> answer(altered(1, 2, 3))
        if slow == "alter_isr_answered":
            play >> after_ms(19) >> after_ms(1)
        play << "isr 1,2,3 v6"


def test_everything_that_is_proposed_goes_out_in_one_request() -> None:
    with both_asked() as play:
        (
            play
            >> answer(altered(1, 2, 3), altered(1, 2, 3, partition=ORDERS_1))
            << "isr 1,2,3 v6"
            << "isr 1,2,3 v6"
        )


def test_what_was_sent_and_not_answered_goes_out_again() -> None:
    with both_asked() as play:
        (
            play
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
            >> after_ms(50)
            << "to 2: AlterIsr of epoch 50 (orders-1 epoch 4 isr 1,2,3 for v5)"
        )


def test_a_callback_that_fails_leaves_those_behind_it_to_the_next_request() -> None:
    with both_asked() as play:
        unknown = Errors.UNKNOWN_SERVER_ERROR
        play >> answer(refused(unknown), altered(1, 2, 3, partition=ORDERS_1))
        play << "expand UNKNOWN_SERVER_ERROR: resubmitted"
        play << "expand OPERATION_NOT_ATTEMPTED: stays pending"
        play << (
            "AlterIsr response failed: IllegalState: UNKNOWN_SERVER_ERROR: an AlterIsr of orders-0"
            " is enqueued already"
        )
        play >> after_ms(50) << "to 2: AlterIsr of epoch 50 (orders-1 epoch 4 isr 1,2,3 for v5)"


def test_one_request_is_in_flight_at_a_time() -> None:
    with two_partitions() as play:
        (
            play
            >> fetch_3_of(ORDERS_0)
            << EXPANSION
            << "fetch-3: nothing, hw 10"
            >> after_ms(50)
            << ASKS
            >> fetch_3_of(ORDERS_1)
            << EXPANSION
            << "fetch-3: nothing, hw 10"
            >> after_ms(490)
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
            >> after_ms(50)
            << "to 2: AlterIsr of epoch 50 (orders-1 epoch 4 isr 1,2,3 for v5)"
        )


def test_2_8_sends_at_once_and_what_came_meanwhile_at_once_after_a_good_answer() -> None:
    with two_partitions("2.8") as play:
        (
            play
            >> fetch_3_of(ORDERS_0)
            << EXPANSION
            << ASKS
            << "fetch-3: nothing, hw 10"
            >> fetch_3_of(ORDERS_1)
            << EXPANSION
            << "fetch-3: nothing, hw 10"
            >> after_ms(500)
            >> answer(altered(1, 2, 3))
            << "isr 1,2,3 v6"
            << "to 2: AlterIsr of epoch 50 (orders-1 epoch 4 isr 1,2,3 for v5)"
        )


WHOLE = (
    Errors.STALE_BROKER_EPOCH,
    Errors.CLUSTER_AUTHORIZATION_FAILED,
    Errors.UNKNOWN_SERVER_ERROR,
)


@pytest.mark.parametrize("profile", ["2.7", "2.8", "3.3"])
@pytest.mark.parametrize("error", WHOLE)
def test_after_an_error_of_the_whole_request_it_goes_out_again_with_the_broker_epoch_of_then(
    profile: str, error: Errors
) -> None:
    with pending(profile) as play:
        assert isinstance(play, Hosting)
        play >> answer_to_all(error)
        play.context.broker_epoch = 60
        play >> after_ms(49) >> after_ms(1) << ASKS.replace("50", "60")


# -- who is asked ----------------------------------------------------------------------------------


def controller_is_3() -> Incoming:
    def tell(play: Playbook) -> None:
        assert isinstance(play, Hosting)
        play.metadata_cache.controller_id = 3

    return tell


def test_who_is_no_controller_is_forgotten_and_the_metadata_cache_asked_again() -> None:
    with pending() as play:
        (
            play
            >> controller_is_3()
            >> answer_to_all(Errors.NOT_CONTROLLER)
            << ASKS.replace("to 2", "to 3")
            >> answer(altered(1, 2, 3), by=3)
            << "isr 1,2,3 v6"
        )


def test_not_controller_for_one_partition_counts_for_the_request() -> None:
    with pending() as play:
        (
            play
            >> controller_is_3()
            >> answer(refused(Errors.NOT_CONTROLLER))
            << ASKS.replace("to 2", "to 3")
        )


def test_a_broken_connection_is_the_same_question_again_50_ms_later() -> None:
    with pending() as play:
        (
            play
            >> controller_is_3()
            >> breaks(2)
            >> after_ms(49)
            >> after_ms(1)
            << ASKS.replace("to 2", "to 3")
        )


def test_a_controller_that_does_not_know_alter_isr_closes_the_connection_of_2_7() -> None:
    """2.7.2 sends without asking for versions (`controller-asked-for-versions`)."""
    with pending() as play:
        (
            play
            >> controller_is_3()
            >> answer_to_all(Errors.UNSUPPORTED_VERSION)
            >> after_ms(49)
            >> after_ms(1)
            << ASKS.replace("to 2", "to 3")
        )


@pytest.mark.parametrize("profile", ["2.8", "3.3"])
def test_from_2_8_on_what_the_controller_does_not_know_is_proposed_again_to_the_same(
    profile: str,
) -> None:
    with pending(profile) as play:
        (
            play
            >> controller_is_3()
            >> answer_to_all(Errors.UNSUPPORTED_VERSION)
            >> after_ms(50)
            << ASKS
        )


def test_the_controller_of_then_is_remembered_until_it_refuses() -> None:
    """The controller is looked up before there is anything to send."""
    with leading(isr=(1, 2), profile="2.7") as play:
        play >> controller_is_3() >> fetch_3() << EXPANSION << "fetch-3: nothing, hw 10"
        play >> after_ms(50) << ASKS


def test_without_a_known_controller_it_looks_every_100_ms() -> None:
    with pending() as play:
        (
            play
            >> update_metadata(live=(LIVE[0], LIVE[2]))
            << "UpdateMetadata: done"
            >> breaks(2)
            >> after_ms(1_000)
            >> update_metadata()
            << "UpdateMetadata: done"
            >> after_ms(100)
            << ASKS
        )


# -- the ZooKeeper path of 2.8 ---------------------------------------------------------------------

WRITES = "set orders-0 at v5: leader 1, epoch 4, isr 1,2,3, controller 7"
OF_ANOTHER = '{"controller_epoch":9,"leader":2,"version":1,"leader_epoch":5,"isr":[2,3]}'


def test_2_8_writes_itself_where_it_is_told_to_and_holds_the_lock_meanwhile() -> None:
    with leading(isr=(1, 2), profile="2.8", propagation="zk") as play:
        (
            play
            >> fetch_3()
            << EXPANSION
            << WRITES
            >> at_once(produce(acks=1), ok(version=6))
            << "isr 1,2,3 v6"
            << "fetch-3: nothing, hw 10"
            << "produce: NONE at 10"
        )


def test_from_2_8_on_a_rejected_write_leaves_it_pending() -> None:
    with leading(isr=(1, 2), profile="2.8", propagation="zk") as play:
        (
            play
            >> fetch_3()
            << EXPANSION
            << WRITES
            >> reply(Code.BAD_VERSION)
            << "getData orders-0"
            >> data(OF_ANOTHER, version=6)
            << "expand INVALID_UPDATE_VERSION: stays pending"
            << "fetch-3: nothing, hw 10"
            >> fetch_3()
            << "fetch-3: nothing, hw 10"
        )


def test_2_7_tries_a_rejected_write_again_with_the_next_fetch_in_vain() -> None:
    with leading(isr=(1, 2), profile="2.7", propagation="zk") as play:
        for _ in range(2):
            (
                play
                >> fetch_3()
                << WRITES
                >> reply(Code.BAD_VERSION)
                << "getData orders-0"
                >> data(OF_ANOTHER, version=6)
                << "rejected, still v5"
                << "fetch-3: nothing, hw 10"
            )
