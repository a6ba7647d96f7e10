"""ZooKeeper's errors and newer controllers inside the controller's steps: what each ends, and what
it leaves (spec §2.5, §2.6, §6.1, §6.9)."""

from __future__ import annotations

from emulator.kafka.protocol.messages import ControlledShutdownRequest, ControlledShutdownResponse
from tests.interaction.controlling import (
    CHILDREN,
    CREATED,
    DELETED,
    FENCE,
    ORDERS_0,
    ORDERS_1,
    Controlling,
    controller_is,
    isr_change,
    led_by,
    state,
)
from tests.interaction.playbook import (
    Incoming,
    Playbook,
    at_once,
    children,
    lost,
    multi_failed,
    multi_ok,
    ok,
    reply,
    session_is,
    watch,
)
from tests.interaction.test_broker_change import lists_brokers
from zk.errors import Code
from zk.ops import SessionState

FENCED = multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
LED = {ORDERS_0: led_by(1, (1, 2, 3))}
WITHOUT_3 = f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"


def another_is_controller(play: Playbook) -> Playbook:
    """The look that follows a fenced write."""
    play << "exists /controller W" >> ok() << "getData /controller W" >> controller_is(2)
    return play << "resigned"


def fenced_while_a_replica_leaves() -> Controlling:
    """Broker 3 is gone; its removal from the ISR meets a newer controller."""
    play = Controlling(LED)
    lists_brokers(play, 1, 2) << "getData orders-0" >> state(1, (1, 2, 3), version=5)
    play << WITHOUT_3 >> FENCED
    another_is_controller(play)
    return play


def test_a_fenced_write_ends_the_event_and_the_controller_looks_whose_turn_it_is() -> None:
    with fenced_while_a_replica_leaves() as play:
        assert not play.controller.is_active


def test_what_the_fenced_transition_had_gathered_spoils_every_later_one_of_this_process() -> None:
    """KAFKA-12315, never fixed in 2.6: the state machine's batch is not emptied."""
    with fenced_while_a_replica_leaves() as play:
        play._make_active(LED, (1, 2, 3), (1, 2, 3))
        play.settle()
        lists_brokers(play, 1, 2)
        (
            play << "replicas to OfflineReplica failed: "
            "IllegalState: the batch is not empty: StopReplica to [3] was not sent"
            << "to 1: UpdateMetadata live 1,2"
            << "to 2: UpdateMetadata live 1,2"
        )


def test_partitions_have_a_batch_of_their_own_and_go_on() -> None:
    with fenced_while_a_replica_leaves() as play:
        play._make_active({ORDERS_0: led_by(3, (3, 1))}, (1, 2, 3), (3, 1))
        play.settle()
        lists_brokers(play, 1, 2) << "getData orders-0" >> state(3, (3, 1), version=5)
        play << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1, controller 7]"
        play >> multi_ok(version=6) << "to 1: LeaderAndIsr (orders-0 leader 1 isr 1 v6)"
        play.forget()


def test_a_state_that_cannot_be_read_keeps_its_replica_where_it_is_and_the_others_go_on() -> None:
    with Controlling({ORDERS_0: led_by(1, (1, 2, 3)), ORDERS_1: led_by(2, (2, 1, 3))}) as play:
        (
            lists_brokers(play, 1, 2)
            << "getData orders-0"
            << "getData orders-1"
            >> reply(Code.NO_AUTH)
            >> state(2, (2, 1, 3), version=5)
            << f"[{FENCE}, set orders-1 at v5: leader 2, epoch 5, isr 2,1, controller 7]"
            >> multi_ok(version=6)
        )
        sent = [line for line in play.said if "LeaderAndIsr" in line]
        assert sent and all("orders-1" in line and "orders-0" not in line for line in sent)
        play.forget()


def test_an_election_whose_write_meets_the_end_of_the_session_elects_nobody() -> None:
    """The batch is every partition's failure, not the event's; then the expiry takes its turn."""
    with Controlling({ORDERS_0: led_by(3, (3, 1, 2))}) as play:
        play.client.register_state_handler(play.controller)
        lists_brokers(play, 1, 2) << "getData orders-0" >> state(3, (3, 1, 2), version=5)
        play << f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
        play >> session_is(SessionState.DISCONNECTED) >> lost >> session_is(SessionState.EXPIRED)
        play << "getData orders-0" >> reply(Code.SESSION_EXPIRED) << "resigned"
        play << "closeSession" << "registers" << "exists /controller W"
        assert play.controller.context.leadership == {}


def test_a_look_that_fails_is_logged_and_the_next_event_is_worked_on() -> None:
    with Controlling(LED) as play:
        play >> watch(CREATED, "/controller") << "exists /controller W" >> reply(Code.NO_AUTH)
        play << "ControllerChange failed: ZooKeeperError: NO_AUTH for /controller"
        play >> isr_change() << "getChildren /isr_change_notification W" >> children()


def test_a_fenced_write_whose_look_fails_is_logged_as_well() -> None:
    with Controlling(LED) as play:
        lists_brokers(play, 1, 2) << "getData orders-0" >> state(1, (1, 2, 3), version=5)
        play << WITHOUT_3 >> FENCED << "exists /controller W" >> reply(Code.NO_AUTH)
        play << "BrokerChange failed: ZooKeeperError: NO_AUTH for /controller"
        play >> isr_change() << "getChildren /isr_change_notification W" >> children()


def test_giving_up_what_another_has_already_is_only_logged() -> None:
    """triggerControllerMove: the delete is fenced, and not repeated."""
    with Controlling(LED) as play:
        play.process.spawn("move", play.controller._trigger_controller_move())
        play.settle()
        play << "getData /controller W" >> controller_is(1) << "resigned"
        play << f"[{FENCE}, delete /controller]" >> FENCED
        play << ("controller move failed: ControllerMoved: controller epoch zkVersion check failed")


def test_who_is_not_controller_any_more_has_nothing_to_give_up() -> None:
    with Controlling(LED) as play:
        play.process.spawn("move", play.controller._trigger_controller_move())
        play.settle()
        play << "getData /controller W" >> controller_is(2)


def announces(broker: int, *, broker_epoch: int = 103) -> Incoming:
    def ask(play: Playbook) -> None:
        assert isinstance(play, Controlling)

        def respond(answer: ControlledShutdownResponse) -> None:
            left = "".join(f" {p}" for p in answer.remaining)
            play.say(f"shutdown of {broker}: {answer.error.name}{left}")

        request = ControlledShutdownRequest(broker, broker_epoch)
        play.controller.requests.controlled_shutdown(request, respond)

    return ask


def test_a_controlled_shutdown_that_is_fenced_is_answered_and_nobody_looks() -> None:
    """Try {}: the exception is the answer, so the resign check waits for the watch."""
    with Controlling(LED) as play:
        play >> announces(3) << "to 3: StopReplica orders-0 epoch 4" << "getData orders-0"
        play >> state(1, (1, 2, 3), version=5) << WITHOUT_3 >> FENCED
        play << "shutdown of 3: STALE_CONTROLLER_EPOCH"
        assert play.controller.is_active
        play >> watch(DELETED, "/controller") << "exists /controller W" >> ok()
        play << "getData /controller W" >> controller_is(2) << "resigned"
        play << "getData /controller W" >> controller_is(2)


def test_a_controlled_shutdown_of_a_broker_nobody_knows() -> None:
    with Controlling(LED) as play:
        play >> announces(9) << "shutdown of 9: UNKNOWN_SERVER_ERROR"
        play >> announces(9, broker_epoch=-1) << "shutdown of 9: BROKER_NOT_AVAILABLE"
        play >> announces(3, broker_epoch=102) << "shutdown of 3: STALE_BROKER_EPOCH"


def test_what_a_leader_alone_still_leads_is_named() -> None:
    with Controlling({ORDERS_0: led_by(3, (3,))}) as play:
        play >> announces(3) << "getData orders-0" >> state(3, (3,), version=5)
        play << "shutdown of 3: NONE orders-0"


def test_notifications_are_deleted_though_reading_them_failed() -> None:
    """H9: the finally block."""
    with Controlling(LED) as play:
        play >> watch(CHILDREN, "/log_dir_event_notification")
        play << "getChildren /log_dir_event_notification W" >> children("log_dir_event_0000000003")
        play << "getData /log_dir_event_notification/log_dir_event_0000000003"
        play >> reply(Code.NO_AUTH)
        play << f"[{FENCE}, delete /log_dir_event_notification/log_dir_event_0000000003]"
        play >> multi_ok()
        play << (
            "LogDirEventNotification failed: ZooKeeperError: "
            "NO_AUTH for /log_dir_event_notification/log_dir_event_0000000003"
        )


def test_events_that_wait_behind_a_fenced_one_do_nothing_afterwards() -> None:
    with Controlling(LED) as play:
        lists_brokers(play, 1, 2) << "getData orders-0" >> state(1, (1, 2, 3), version=5)
        play << WITHOUT_3
        play >> at_once(isr_change(), watch(CHILDREN, "/brokers/topics"))
        play >> FENCED
        another_is_controller(play)
