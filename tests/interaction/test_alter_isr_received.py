"""The controller's handling of AlterIsr: accepted proposals, writes, requests to brokers, and
responses (spec §7.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import AlterIsrPartition, AlterIsrRequest, AlterIsrResponse
from emulator.trace.values import TopicPartition
from tests.interaction.controlling import (
    FENCE,
    ORDERS_0,
    ORDERS_1,
    Controlling,
    led_by,
    state,
)
from tests.interaction.playbook import (
    Incoming,
    Playbook,
    at_once,
    multi_failed,
    multi_ok,
    session_is,
)
from zk.client.codec import LeaderIsrAndControllerEpoch, ReplicaAssignment
from zk.errors import Code
from zk.ops import SessionState

LED_BY_2 = {ORDERS_0: led_by(2, (2, 1))}
WRITES = f"[{FENCE}, set orders-0 at v5: leader 2, epoch 4, isr 2,1,3, controller 7]"
FENCED = multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
EXPIRED = multi_failed(Code.SESSION_EXPIRED, Code.SESSION_EXPIRED)
STALE = multi_failed(Code.OK, Code.BAD_VERSION)


def receiving(
    leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch] | None = None,
    *,
    profile: str = "2.7",
    **rest: Any,
) -> Controlling:
    """A controller of a version that knows AlterIsr."""
    return Controlling(leadership, profile=profile, **rest)


def asked(
    *isr: int, epoch: int = 4, version: int = 5, partition: TopicPartition = ORDERS_0
) -> AlterIsrPartition:
    return AlterIsrPartition(partition, epoch, isr, version)


def line_of(response: AlterIsrResponse) -> str:
    if response.error is not Errors.NONE:
        return response.error.name
    return " ".join(
        f"{p.partition} {p.error.name}" if p.error else f"{p.partition} {p.isr} v{p.zk_version}"
        for p in response.partitions
    ).replace(", ", ",")


def alter_isr(
    *partitions: AlterIsrPartition, sender: int = 2, broker_epoch: int = 102, version: int = 0
) -> Incoming:
    """A leader's request; the answer comes out as a line."""
    request = AlterIsrRequest(sender, broker_epoch, partitions, version)

    def start(play: Playbook) -> None:
        assert isinstance(play, Controlling)
        play.controller.requests.alter_isrs(request, lambda r: play.say(f"answer: {line_of(r)}"))

    return start


def metadata(state: str) -> list[str]:
    return [f"to {b}: UpdateMetadata live 1,2,3 ({state})" for b in (1, 2, 3)]


def told(play: Playbook, state: str) -> Playbook:
    for line in metadata(state):
        play << line
    return play


# -- what is taken ---------------------------------------------------------------------------------


def test_one_fenced_write_one_read_all_brokers_told_and_then_the_answer() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES >> multi_ok(6) << "getData orders-0"
        play >> state(2, (2, 1, 3), version=6)
        play << "answer: orders-0 (2,1,3) v6"
        told(play, "orders-0 leader 2 isr 2,1,3 v6")


def test_nobody_is_told_as_leader_and_isr() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES >> multi_ok(6) << "getData orders-0"
        play >> state(2, (2, 1, 3), version=6)
        assert not [line for line in play.said if "LeaderAndIsr" in line]
        play.forget()


def test_the_update_metadata_is_queued_before_the_answer() -> None:
    with receiving(LED_BY_2) as play:
        queued: list[list[int]] = []
        request = AlterIsrRequest(2, 102, (asked(2, 1, 3),))
        threads = play.controller.parts.channels.threads

        def answered(_: AlterIsrResponse) -> None:
            queued.append([broker for broker, thread in threads.items() if len(thread.queue)])

        controller = play.controller
        play >> (lambda _: controller.requests.alter_isrs(request, answered))
        play << WRITES >> multi_ok(6) << "getData orders-0" >> state(2, (2, 1, 3), version=6)
        assert queued == [[1, 2, 3]]
        play.forget()


def test_several_partitions_are_one_batch_of_writes_and_one_of_reads() -> None:
    both = LED_BY_2 | {ORDERS_1: led_by(2, (2, 1))}
    with receiving(both) as play:
        play >> alter_isr(asked(2, 1, 3), asked(2, 1, 3, partition=ORDERS_1))
        play << WRITES << WRITES.replace("orders-0", "orders-1")
        play >> multi_ok(6) >> multi_ok(6) << "getData orders-0" << "getData orders-1"
        play >> state(2, (2, 1, 3), version=6) >> state(2, (2, 1, 3), version=6)
        play << "answer: orders-0 (2,1,3) v6 orders-1 (2,1,3) v6"
        play.forget()


def test_the_present_controller_epoch_is_written_whoever_decided_before() -> None:
    with receiving({ORDERS_0: led_by(2, (2, 1), decided_by=5)}) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES
        play.forget()


# -- what is answered without a write --------------------------------------------------------------


def test_a_partition_that_is_not_known() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3, partition=ORDERS_1))
        play << "answer: orders-1 UNKNOWN_TOPIC_OR_PARTITION"
        for broker in (1, 2, 3):
            play << f"to {broker}: UpdateMetadata live 1,2,3"


def test_a_leader_epoch_that_has_passed() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3, epoch=3)) << "answer: orders-0 FENCED_LEADER_EPOCH"
        told(play, "orders-0 leader 2 isr 2,1 v5")


@pytest.mark.parametrize("version", [3, 5, 8])
def test_what_is_so_already_is_a_success_whatever_the_version(version: int) -> None:
    """A retry whose first answer was lost finds its own work done."""
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, version=version)) << "answer: orders-0 (2,1) v5"
        told(play, "orders-0 leader 2 isr 2,1 v5")


def test_the_same_members_in_another_order_are_another_isr() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(1, 2)) << WRITES.replace("2,1,3", "1,2")
        play.forget()


@pytest.mark.parametrize(
    "request_of",
    [
        alter_isr(asked(2, 1, 3), sender=3, broker_epoch=103),
        alter_isr(asked(2, 1, 3, epoch=9)),
        alter_isr(asked(2, 1, 7)),
        alter_isr(asked(2, 1, 3, version=1)),
    ],
    ids=["another leader", "a greater epoch", "a member that is dead", "another version"],
)
def test_up_to_3_2_nothing_else_is_tested_before_the_write(request_of: Incoming) -> None:
    with receiving(LED_BY_2, profile="2.8") as play:
        play >> request_of
        (line,) = play.said
        assert line.startswith(f"[{FENCE}, set orders-0 at v")
        play.forget()


# -- writes that fail ------------------------------------------------------------------------------


def test_another_version_in_zookeeper_is_invalid_update_version_and_no_second_try() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES >> STALE
        play << "answer: orders-0 INVALID_UPDATE_VERSION"
        told(play, "orders-0 leader 2 isr 2,1 v5")


def test_any_other_code_is_an_unknown_error_of_that_partition() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES
        play >> multi_failed(Code.OK, Code.NO_NODE) << "answer: orders-0 UNKNOWN_SERVER_ERROR"
        told(play, "orders-0 leader 2 isr 2,1 v5")


def test_a_session_that_has_expired_is_an_unknown_error_of_each_partition() -> None:
    """As recorded (zombie-controller): UpdateMetadata goes out all the same, of the old epoch."""
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES
        play >> EXPIRED
        assert "answer: orders-0 UNKNOWN_SERVER_ERROR" in play.said
        play.forget()


def test_a_newer_controller_is_an_unknown_error_of_the_whole_request_and_no_resignation() -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES >> FENCED
        (failed, said) = play.said
        assert failed.startswith("AlterIsr failed: ControllerMoved")
        assert said == "answer: UNKNOWN_SERVER_ERROR"
        assert play.controller.is_active
        play.forget()


# -- who asks whom ---------------------------------------------------------------------------------


def test_who_is_no_controller_says_so() -> None:
    with receiving(active=False) as play:
        play.controller.events.start()
        play >> alter_isr(asked(2, 1, 3)) << "answer: NOT_CONTROLLER"


@pytest.mark.parametrize("broker_epoch", [101, 103])
def test_the_broker_epoch_has_to_be_the_cached_one_exactly(broker_epoch: int) -> None:
    with receiving(LED_BY_2) as play:
        play >> alter_isr(asked(2, 1, 3), broker_epoch=broker_epoch)
        play << "answer: STALE_BROKER_EPOCH"


def test_a_broker_that_is_not_live_has_a_stale_epoch() -> None:
    with receiving(LED_BY_2, live=(1, 3)) as play:
        play >> alter_isr(asked(2, 1, 3)) << "answer: STALE_BROKER_EPOCH"


def test_what_the_expiry_of_the_session_drops_from_the_queue_is_never_answered() -> None:
    """`preempt` of AlterIsrReceived is empty (2.7.2, 2.8.2, 3.3.2)."""
    both = at_once(alter_isr(asked(2, 1, 3)), alter_isr(asked(2, 1)))
    with receiving(LED_BY_2) as play:
        play.client.register_state_handler(play.controller)
        play >> both << WRITES
        play >> session_is(SessionState.EXPIRED) >> EXPIRED
        assert [line for line in play.said if line.startswith("answer")] == [
            "answer: orders-0 UNKNOWN_SERVER_ERROR"
        ]
        play.forget()


# -- 3.3 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [asked(2, 1, 3, epoch=5), asked(2, 1, 3, version=6)])
def test_3_3_whoever_knows_more_than_the_controller_shall_look_for_another(
    ahead: AlterIsrPartition,
) -> None:
    """KAFKA-14154: the controller must be a zombie."""
    with receiving(LED_BY_2, profile="3.3") as play:
        play >> alter_isr(ahead) << "answer: orders-0 NOT_CONTROLLER"
        play.forget()


def test_3_3_an_old_version_is_refused_without_a_write() -> None:
    with receiving(LED_BY_2, profile="3.3") as play:
        play >> alter_isr(asked(2, 1, 3, version=4)) << "answer: orders-0 INVALID_UPDATE_VERSION"
        play.forget()


def test_3_3_what_is_so_already_comes_before_the_test_of_the_version() -> None:
    """KAFKA-14144: a retry after a lost answer."""
    with receiving(LED_BY_2, profile="3.3") as play:
        play >> alter_isr(asked(2, 1, version=4)) << "answer: orders-0 (2,1) v5"
        play.forget()


@pytest.mark.parametrize(
    ("version", "error"), [(0, "OPERATION_NOT_ATTEMPTED"), (2, "INELIGIBLE_REPLICA")]
)
def test_3_3_takes_only_members_that_are_live_and_tells_so_as_the_sender_knows_it(
    version: int, error: str
) -> None:
    with receiving(LED_BY_2, live=(1, 2), profile="3.3") as play:
        play >> alter_isr(asked(2, 1, 3), version=version) << f"answer: orders-0 {error}"
        play.forget()


def test_3_3_who_shuts_down_may_not_join() -> None:
    with receiving(LED_BY_2, profile="3.3") as play:
        play.controller.context.shutting_down[3] = None
        play >> alter_isr(asked(2, 1, 3), version=2) << "answer: orders-0 INELIGIBLE_REPLICA"
        play.forget()


# -- reassignments ---------------------------------------------------------------------------------


def moving(profile: str, propagation: str = "") -> Controlling:
    """orders-0 moves from 1,2 to 2,3."""
    play = receiving(LED_BY_2, profile=profile, propagation=propagation, replicas=(2, 3, 1))
    context = play.controller.context
    context.assignments[ORDERS_0] = _MOVE
    context.being_reassigned[ORDERS_0] = None
    return play


def test_a_success_that_completes_a_reassignment_is_answered_first() -> None:
    with moving("2.7") as play:
        play >> alter_isr(asked(2, 1, 3)) << WRITES >> multi_ok(6) << "getData orders-0"
        play >> state(2, (2, 1, 3), version=6) << "answer: orders-0 (2,1,3) v6"
        told(play, "orders-0 leader 2 isr 2,1,3 v6")
        play << "getData orders-0" >> state(2, (2, 1, 3), version=6) << "getData orders-0"
        play.forget()


def test_a_refusal_completes_nothing() -> None:
    with moving("2.7") as play:
        play >> alter_isr(asked(2, 1, 3, epoch=3)) << "answer: orders-0 FENCED_LEADER_EPOCH"
        told(play, "orders-0 leader 2 isr 2,1 v5")


_MOVE = ReplicaAssignment((2, 3, 1), (3,), (1,))


@pytest.mark.parametrize(
    ("profile", "propagation", "watched"),
    [("2.7", "rpc", ""), ("2.7", "zk", " W"), ("2.6", "", " W")],
)
def test_a_controller_that_asks_itself_sets_no_watch_on_a_partition_that_moves(
    profile: str, propagation: str, watched: str
) -> None:
    with moving(profile, propagation) as play:
        reassignments = play.controller._reassignments
        play.run(reassignments._update_current_reassignment(ORDERS_0, _MOVE))
        play.process.spawn("look", reassignments._is_complete(ORDERS_0, _MOVE))
        play.settle()
        play << f"getData orders-0{watched}"
