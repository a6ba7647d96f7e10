"""The controller's session expires: what is dropped, who resigns, what comes first (spec §2.10)."""

from __future__ import annotations

from emulator.kafka.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from tests.interaction.controlling import ORDERS_0, Controlling, controller_is, isr_change, led_by
from tests.interaction.playbook import (
    Incoming,
    after_ms,
    at_once,
    lost,
    no_node,
    ok,
    reply,
    session_is,
    thread,
)
from zk.errors import Code
from zk.ops import SessionState

LED = {ORDERS_0: led_by(1, (1, 2, 3))}
EXPIRED = at_once(session_is(SessionState.DISCONNECTED), session_is(SessionState.EXPIRED))
LIST = "getChildren /isr_change_notification W"


def controlling() -> Controlling:
    play = Controlling(LED)
    play.client.register_state_handler(play.controller)
    return play


def registers_and_looks(play: Controlling) -> Controlling:
    """The requests after every expiry; the second read is the election's own first step."""
    return play << "closeSession" << "registers" << "exists /controller W"


def test_it_resigns_before_the_new_session_and_registers_and_runs_under_it() -> None:
    with controlling() as play:
        (
            play
            >> EXPIRED
            << "resigned"
            << "closeSession"
            << "registers"
            << "exists /controller W"
            >> no_node
            << "getData /controller W"
            >> no_node
            << "getData /controller W"
            >> controller_is(2)
        )
        assert not play.controller.is_active
        assert play.controller.parts.channels.threads == {}


def test_a_resignation_takes_its_time_while_a_session_begins_and_send_threads_run_on() -> None:
    """The new session waits until the event is being processed, not until it is over
    (QueuedEvent.awaitProcessing); who registers is an event behind it."""
    with controlling() as play:
        play.take(controller_resign=16)
        play >> EXPIRED << "closeSession" >> after_ms(15)
        assert play.controller.parts.channels.threads
        play >> after_ms(1) << "resigned" << "registers" << "exists /controller W"
        assert not play.controller.parts.channels.threads
        play >> ok() << "getData /controller W" >> controller_is(2)
        play << "getData /controller W" >> controller_is(2)


def test_an_event_that_is_being_processed_ends_before_the_resignation() -> None:
    """No event runs between the old session and the new one."""
    with controlling() as play:
        (
            play
            >> isr_change()
            << LIST
            >> session_is(SessionState.DISCONNECTED)
            >> lost
            >> session_is(SessionState.EXPIRED)
            << "IsrChangeNotification failed: SessionExpired: SESSION_EXPIRED"
            << "resigned"
        )
        registers_and_looks(play) >> ok() << "getData /controller W" >> controller_is(2)
        play << "getData /controller W" >> controller_is(2)


def shutdown_of(broker: int, name: str) -> Incoming:
    def ask(play: object) -> None:
        assert isinstance(play, Controlling)

        def respond(response: ControlledShutdownResponse) -> None:
            play.say(f"{name}: {response.error.name}")

        play.controller.requests.controlled_shutdown(
            ControlledShutdownRequest(broker, 100 + broker), respond
        )

    return ask


def test_events_that_queue_behind_it_are_dropped_and_who_waits_is_told_that_it_moved() -> None:
    with controlling() as play:
        (
            play
            >> isr_change()
            << LIST
            >> at_once(isr_change(), shutdown_of(2, "broker 2"))
            >> EXPIRED
            << "broker 2: STALE_CONTROLLER_EPOCH"
            >> reply(Code.SESSION_EXPIRED)
            << (
                "IsrChangeNotification failed: ZooKeeperError: "
                "SESSION_EXPIRED for /isr_change_notification"
            )
            << "resigned"
        )
        registers_and_looks(play) >> ok() << "getData /controller W" >> controller_is(2)
        play << "getData /controller W" >> controller_is(2)


def test_who_asks_a_broker_that_is_not_controller_any_more_is_told_so() -> None:
    with controlling() as play:
        play.controller.active_controller_id = 3
        play >> shutdown_of(2, "broker 2") << "broker 2: STALE_CONTROLLER_EPOCH"


def test_an_expiry_does_not_keep_the_thread_from_its_end() -> None:
    """It drops ShutdownEventThread, which only wakes the thread up (ControllerEventManager.scala
    close ends the thread first)."""
    with controlling() as play:
        play.take(controller_event=16)
        play >> isr_change() >> thread("shutdown", play.controller.shutdown())
        play >> EXPIRED >> after_ms(16) << LIST >> lost
        play << "IsrChangeNotification failed: SessionExpired: SESSION_EXPIRED"
        play << "resigned" << "shutdown: done"
