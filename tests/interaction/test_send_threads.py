"""Requests from the controller to brokers: order, retries, batches (spec §6.9, §6.10)."""

from __future__ import annotations

from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import UpdateMetadataResponse
from emulator.trace import events
from tests.interaction.controlling import ORDERS_0, ORDERS_1, Controlling, led_by
from tests.interaction.playbook import after_ms, answers, breaks, thread

LED = {ORDERS_0: led_by(1, (1, 2)), ORDERS_1: led_by(2, (2, 1))}
TELL_0 = "UpdateMetadata live 1,2,3 (orders-0 leader 1 isr 1,2 v5)"
TELL_1 = "UpdateMetadata live 1,2,3 (orders-1 leader 2 isr 2,1 v5)"


def tell(play: Controlling, *partitions: object, brokers: tuple[int, ...] = (2,)) -> Controlling:
    """The controller sends UpdateMetadata about these partitions."""
    send = play.controller.parts.send_update_metadata(brokers, partitions)
    play >> thread("controller", send) << "controller: done"
    return play


def test_a_broker_gets_its_requests_one_after_the_other() -> None:
    with Controlling(LED) as play:
        play.network.silent.add(2)
        tell(play, ORDERS_0) << f"to 2: {TELL_0}"
        tell(play, ORDERS_1)
        play >> answers(2, UpdateMetadataResponse(Errors.NONE)) << f"to 2: {TELL_1}"


def test_one_broker_that_does_not_answer_keeps_nobody_else_waiting() -> None:
    with Controlling(LED) as play:
        play.network.silent.add(2)
        tell(play, ORDERS_0, brokers=(2, 3)) << f"to 2: {TELL_0}" << f"to 3: {TELL_0}"
        tell(play, ORDERS_1, brokers=(2, 3)) << f"to 3: {TELL_1}"


def test_a_broken_request_is_sent_again_after_100_ms_and_what_is_behind_it_waits() -> None:
    with Controlling(LED) as play:
        play.network.silent.add(2)
        tell(play, ORDERS_0) << f"to 2: {TELL_0}"
        tell(play, ORDERS_1)
        (
            play
            >> breaks(2)
            >> after_ms(99)
            >> after_ms(1)
            << f"to 2: {TELL_0}"
            >> answers(2, UpdateMetadataResponse(Errors.NONE))
            << f"to 2: {TELL_1}"
        )


def test_a_broker_that_cannot_be_reached_is_tried_for_ever() -> None:
    with Controlling(LED) as play:
        play.network.unreachable.add(2)
        tell(play, ORDERS_0) << "to 2: connection refused"
        for _ in range(1000):
            play >> after_ms(100) << "to 2: connection refused"
        play.network.unreachable.clear()
        play >> after_ms(100) << f"to 2: {TELL_0}"
        sent = [e for e in play.sink.events if isinstance(e, events.ControlRequestSent)]
        assert [(e.to, e.attempt) for e in sent] == [(2, 1002)]


def test_when_a_broker_leaves_its_queue_goes_and_a_new_thread_begins_empty() -> None:
    with Controlling(LED) as play:
        play.network.silent.add(2)
        tell(play, ORDERS_0) << f"to 2: {TELL_0}"
        tell(play, ORDERS_1)
        channels = play.controller.parts.channels
        play >> thread("leaves", channels.remove_broker(2)) << "leaves: done"
        play >> breaks(2) >> after_ms(1000)
        where = play.controller.context.live_brokers[2][0]
        play >> thread("comes", channels.add_broker(where)) << "comes: done" >> after_ms(1000)
        tell(play, ORDERS_1) << f"to 2: {TELL_1}"


def test_answers_become_events_of_the_controller() -> None:
    with Controlling(LED) as play:
        play.network.silent.add(2)
        tell(play, ORDERS_0) << f"to 2: {TELL_0}"
        play >> answers(2, UpdateMetadataResponse(Errors.STALE_CONTROLLER_EPOCH))
        queued = [e.event for e in play.sink.events if isinstance(e, events.ControllerEventQueued)]
        assert queued[-1] == "UpdateMetadataResponseReceived"
        assert play.controller.is_active, "it is only logged"


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_sends_leader_and_isr_then_update_metadata_then_stop_replica() -> None:
    with Controlling(LED) as play:
        batch, context = play.controller.parts.batch, play.controller.context
        batch.new_batch()
        batch.add_stop_replica([2], ORDERS_1, delete=False)
        batch.add_leader_and_isr(
            [2], ORDERS_0, LED[ORDERS_0], context.assignments[ORDERS_0], is_new=False
        )
        (
            play
            >> thread("batch", batch.send(7))
            << "batch: done"
            << "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v5)"
            << f"to 2: {TELL_0}"
            << "to 2: StopReplica orders-1 epoch 4"
            << f"to 1: {TELL_0}"
            << f"to 3: {TELL_0}"
        )


def test_a_later_entry_replaces_the_earlier_and_new_and_delete_stick() -> None:
    with Controlling(LED) as play:
        batch, context = play.controller.parts.batch, play.controller.context
        batch.new_batch()
        assignment = context.assignments[ORDERS_0]
        batch.add_leader_and_isr([2], ORDERS_0, led_by(3, (3,)), assignment, is_new=True)
        batch.add_leader_and_isr([2], ORDERS_0, LED[ORDERS_0], assignment, is_new=False)
        batch.add_stop_replica([2], ORDERS_1, delete=True)
        batch.add_stop_replica([2], ORDERS_1, delete=False)
        play >> thread("batch", batch.send(7)) << "batch: done"
        told = [line for line in play.said if line.startswith("to 2: ")]
        assert told == [
            "to 2: LeaderAndIsr (orders-0 leader 1 isr 1,2 v5) new",
            f"to 2: {TELL_0}",
            "to 2: StopReplica orders-1 epoch 4 delete",
        ]
        play.forget()


def test_who_is_not_registered_any_more_gets_nothing() -> None:
    with Controlling(LED) as play:
        batch, context = play.controller.parts.batch, play.controller.context
        batch.new_batch()
        assignment = context.assignments[ORDERS_0]
        batch.add_leader_and_isr([2, 3], ORDERS_0, LED[ORDERS_0], assignment, is_new=False)
        del context.live_brokers[3]
        play >> thread("batch", batch.send(7)) << "batch: done"
        assert not [line for line in play.said if line.startswith("to 3: ")]
        play.forget()


def test_replicas_that_are_offline_or_shutting_down_are_named_in_update_metadata() -> None:
    with Controlling(LED, live=(1, 2)) as play:
        play.controller.context.shutting_down[2] = None
        batch = play.controller.parts.batch
        batch.new_batch()
        batch.add_update_metadata([1], [ORDERS_0])
        state = batch._update_metadata[ORDERS_0]
        assert state.offline_replicas == (2, 3)
        batch.clear()


def test_the_receivers_broker_epoch_goes_with_every_request() -> None:
    with Controlling(LED) as play:
        tell(play, ORDERS_0, brokers=(1, 2, 3))
        play.forget()
        assert [(to, request.broker_epoch) for to, request in play.network.sent] == [
            (1, 101),
            (2, 102),
            (3, 103),
        ]
