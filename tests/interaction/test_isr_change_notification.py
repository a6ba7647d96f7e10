"""How the controller learns of ISR changes, and what it does with them (spec §2.2, §2.9, §6.6)."""

from __future__ import annotations

from emulator.trace import events
from tests.interaction.controlling import (
    FENCE,
    ORDERS_0,
    ORDERS_1,
    Controlling,
    controller_is,
    isr_change,
    led_by,
    notification,
    state,
)
from tests.interaction.playbook import (
    after_ms,
    children,
    data,
    multi_failed,
    multi_ok,
    no_node,
    reply,
)
from zk.errors import Code

LIST = "getChildren /isr_change_notification W"
READ = "getData /isr_change_notification/isr_change_000000000"
DELETE = f"[{FENCE}, delete /isr_change_notification/isr_change_000000000"
ONE, TWO, THREE = (f"isr_change_000000000{n}" for n in (1, 2, 3))
BOTH = {ORDERS_0: led_by(2, (2, 1, 3)), ORDERS_1: led_by(3, (3, 1, 2))}


def test_a_notification_is_read_its_states_read_again_everybody_told_and_then_it_goes() -> None:
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE)
            << f"{READ}1"
            >> notification(ORDERS_0)
            << "getData orders-0"
            >> state(2, (2, 1), version=6)
            << f"{DELETE}1]"
            << "to 1: UpdateMetadata live 1,2,3 (orders-0 leader 2 isr 2,1 v6)"
            << "to 2: UpdateMetadata live 1,2,3 (orders-0 leader 2 isr 2,1 v6)"
            << "to 3: UpdateMetadata live 1,2,3 (orders-0 leader 2 isr 2,1 v6)"
            >> multi_ok()
        )


def test_between_the_states_and_the_messages_about_them_time_passes() -> None:
    with Controlling(BOTH) as play:
        play.take(notification_processed=5)
        play >> isr_change() << LIST >> children(ONE) << f"{READ}1" >> notification(ORDERS_0)
        play << "getData orders-0" >> state(2, (2, 1), version=6)
        play >> after_ms(4) >> after_ms(1) << f"{DELETE}1]"
        play.forget()


def queued_before_the_delete(play: Controlling) -> list[int]:
    """Brokers whose send thread had the request in its queue when the delete went out."""
    return [
        broker
        for broker, thread in play.controller.parts.channels.threads.items()
        if len(thread.queue)
    ]


def test_the_update_metadata_is_queued_for_every_broker_before_the_notification_goes() -> None:
    with Controlling(BOTH) as play:
        queued: list[list[int]] = []
        play.sink.listen(
            lambda e: (
                isinstance(e, events.ZkSent)
                and e.op == "multi/delete"
                and queued.append(queued_before_the_delete(play))
            )
        )
        play >> isr_change() << LIST >> children(ONE) << f"{READ}1"
        play >> notification(ORDERS_0) << "getData orders-0" >> state(2, (2, 1), version=6)
        assert queued == [[1, 2, 3]]
        play.forget()


def test_several_notifications_are_read_together_and_a_state_as_often_as_it_is_named() -> None:
    """A Seq since 1.1; the brokers hear of each partition once."""
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE, TWO, THREE)
            << f"{READ}1"
            << f"{READ}2"
            << f"{READ}3"
            >> notification(ORDERS_0)
            >> notification(ORDERS_0, ORDERS_1)
            >> no_node
            << "getData orders-0"
            << "getData orders-0"
            << "getData orders-1"
            >> state(2, (2, 1), version=6)
            >> state(2, (2, 1), version=6)
            >> state(3, (3,), version=8)
            << f"{DELETE}1]"
            << f"{DELETE}2]"
            << f"{DELETE}3]"
        )
        for broker in (1, 2, 3):
            play << (
                f"to {broker}: UpdateMetadata live 1,2,3 "
                "(orders-0 leader 2 isr 2,1 v6) (orders-1 leader 3 isr 3 v8)"
            )
        play >> multi_ok() >> multi_ok() >> multi_failed(Code.OK, Code.NO_NODE)


def test_deleting_children_fires_the_watch_again_and_the_empty_event_tells_nobody() -> None:
    with Controlling(BOTH) as play:
        play >> isr_change() << LIST >> children()


def test_events_that_queue_up_while_one_is_processed_each_list_anew() -> None:
    """1.0 and older used the list delivered with the event (KAFKA-5879)."""
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> isr_change()
            >> children(ONE)
            << f"{READ}1"
            >> no_node
            << f"{DELETE}1]"
            >> multi_failed(Code.OK, Code.NO_NODE)
            << LIST
            >> children()
        )


def test_a_broker_that_is_not_controller_does_nothing() -> None:
    with Controlling(BOTH) as play:
        play.controller.active_controller_id = 2
        play >> isr_change()


def test_a_notification_goes_even_when_its_states_could_not_be_read() -> None:
    """H9: brokers learn of the change only with the next one."""
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE)
            << f"{READ}1"
            >> notification(ORDERS_0)
            << "getData orders-0"
            >> reply(Code.NO_AUTH)
            << f"{DELETE}1]"
            >> multi_ok()
            << (
                "IsrChangeNotification failed: ZooKeeperError: "
                "NO_AUTH for /brokers/topics/orders/partitions/0/state"
            )
        )
        state_in_cache = play.controller.context.leadership[ORDERS_0]
        assert state_in_cache.leader_and_isr.isr == (2, 1, 3)


def test_a_delete_that_meets_another_controllers_epoch_makes_this_one_look_and_resign() -> None:
    with Controlling({ORDERS_0: led_by(1, (1,))}, live=(1,), replicas=(1,)) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE)
            << f"{READ}1"
            >> notification(ORDERS_0)
            << "getData orders-0"
            >> state(1, (1,), version=6)
            << f"{DELETE}1]"
            << "to 1: UpdateMetadata live 1 (orders-0 leader 1 isr 1 v6)"
            >> multi_failed(Code.BAD_VERSION, Code.RUNTIME_INCONSISTENCY)
            << "exists /controller W"
            >> reply(Code.OK)
            << "getData /controller W"
            >> controller_is(2)
            << "resigned"
        )


def test_garbage_in_a_notification_is_reported_and_the_others_are_worked_on() -> None:
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE, TWO)
            << f"{READ}1"
            << f"{READ}2"
            >> data('{"version":1,"partitions":7}')
            >> notification(ORDERS_1)
            << "malformed /isr_change_notification/isr_change_0000000001"
            << "getData orders-1"
            >> state(3, (3, 1), version=6)
            << f"{DELETE}1]"
            << f"{DELETE}2]"
        )
        for broker in (1, 2, 3):
            play << f"to {broker}: UpdateMetadata live 1,2,3 (orders-1 leader 3 isr 3,1 v6)"
        play >> multi_ok() >> multi_ok()


def test_garbage_in_a_state_is_reported_and_the_cache_keeps_what_it_had() -> None:
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE)
            << f"{READ}1"
            >> notification(ORDERS_0)
            << "getData orders-0"
            >> data("\0\1", version=9)
            << "malformed orders-0"
            << f"{DELETE}1]"
        )
        for broker in (1, 2, 3):
            play << f"to {broker}: UpdateMetadata live 1,2,3 (orders-0 leader 2 isr 2,1,3 v5)"
        play >> multi_ok()


def test_a_notification_about_a_partition_that_nobody_knows_is_only_deleted() -> None:
    with Controlling(BOTH) as play:
        (
            play
            >> isr_change()
            << LIST
            >> children(ONE)
            << f"{READ}1"
            >> notification(ORDERS_0._replace(topic="gone"))
            << "getData gone-0"
            >> no_node
            << f"{DELETE}1]"
        )
        for broker in (1, 2, 3):
            play << f"to {broker}: UpdateMetadata live 1,2,3"
        play >> multi_ok()


def test_a_lost_connection_is_waited_for_and_the_event_goes_on_where_it_was() -> None:
    with Controlling(BOTH) as play:
        (play >> isr_change() << LIST >> reply(Code.CONNECTION_LOSS) << LIST >> children())


def test_brokers_that_shut_down_are_told_too() -> None:
    with Controlling(BOTH) as play:
        play.controller.context.shutting_down[3] = None
        play >> isr_change() << LIST >> children(ONE) << f"{READ}1"
        play >> notification(ORDERS_0) << "getData orders-0" >> state(2, (2, 1), version=6)
        play << f"{DELETE}1]"
        for broker in (1, 2, 3):
            play << f"to {broker}: UpdateMetadata live 1,2,3 (orders-0 leader 2 isr 2,1 v6)"
        play >> multi_ok()
