"""The steps of a controlled shutdown, and where time goes by between them (spec §6.11): who stops
has its answer last, and may have it before all that was sent to it."""

from __future__ import annotations

import pytest

from tests.interaction.controlling import FENCE, ORDERS_0, ORDERS_1, Controlling, led_by, state
from tests.interaction.playbook import after_ms, multi_ok
from tests.interaction.test_controller_errors import announces

ELECTED = f"[{FENCE}, set orders-0 at v5: leader 1, epoch 5, isr 1,2, controller 7]"
WITHOUT_3 = f"[{FENCE}, set orders-1 at v5: leader 1, epoch 5, isr 1,2, controller 7]"


def told_of(partition: str, *receivers: int) -> list[str]:
    """The controller's requests after `partition` has lost broker 3, in the order of each lane."""
    new = f"({partition} leader 1 isr 1,2 v6)"
    roles = [f"to {b}: LeaderAndIsr {new}" for b in receivers]
    return [*roles, *(f"to {b}: UpdateMetadata live 1,2,3 {new}" for b in (1, 2, 3))]


def stops(**takes_ms: int) -> Controlling:
    """Broker 3, leader of orders-0 and follower in orders-1, announces its shutdown to a controller
    whose steps take this long; a leader is elected and written."""
    play = Controlling({ORDERS_0: led_by(3, (3, 1, 2)), ORDERS_1: led_by(1, (1, 2, 3))})
    play.take(**takes_ms)
    play >> announces(3) << "getData orders-0" >> state(3, (3, 1, 2), version=5) << ELECTED
    play >> multi_ok(version=6)
    return play


def hears(play: Controlling, *lines: str) -> None:
    for line in lines:
        play << line


ROLES_MOVE = told_of("orders-0", 1, 2, 3)
REPLICA_STOPS = ["to 3: StopReplica orders-1 epoch 4"]
REST_IS_TOLD = [*told_of("orders-1", 1, 2), "to 3: StopReplica orders-1 epoch 4"]


def left(play: Controlling) -> None:
    """ZooKeeper shows orders-1, and takes it without broker 3."""
    play >> state(1, (1, 2, 3), version=5) << WITHOUT_3 >> multi_ok(version=6)


def test_leaders_move_then_replicas_stop_and_leave_then_the_others_hear_and_it_may_go() -> None:
    with stops() as play:
        hears(play, *ROLES_MOVE, *REPLICA_STOPS, "getData orders-1")
        left(play)
        hears(play, *REST_IS_TOLD, "shutdown of 3: NONE")


def test_nobody_is_told_of_a_leader_before_the_election_is_over() -> None:
    with stops(leaders_elected=9) as play:
        play >> after_ms(8) >> after_ms(1)
        hears(play, *ROLES_MOVE, *REPLICA_STOPS, "getData orders-1")
        left(play)
        hears(play, *REST_IS_TOLD, "shutdown of 3: NONE")


def test_roles_move_before_it_is_the_turn_of_its_replicas() -> None:
    with stops(leaders_moved=11) as play:
        hears(play, *ROLES_MOVE)
        play >> after_ms(10) >> after_ms(1)
        hears(play, *REPLICA_STOPS, "getData orders-1")
        left(play)
        hears(play, *REST_IS_TOLD, "shutdown of 3: NONE")


def test_who_only_leads_may_go_as_soon_as_its_roles_have_moved() -> None:
    play = Controlling({ORDERS_0: led_by(3, (3, 1, 2))})
    play.take(leaders_moved=11)
    play >> announces(3) << "getData orders-0" >> state(3, (3, 1, 2), version=5) << ELECTED
    play >> multi_ok(version=6)
    hears(play, *ROLES_MOVE, "shutdown of 3: NONE")


@pytest.mark.parametrize("step", ["leave_isr", "left_isr"])
def test_leaving_an_isr_takes_time_before_it_is_written_and_before_it_is_told(step: str) -> None:
    with stops(**{step: 8}) as play:
        hears(play, *ROLES_MOVE, *REPLICA_STOPS, "getData orders-1")
        play >> state(1, (1, 2, 3), version=5)
        if step == "leave_isr":
            play >> after_ms(7) >> after_ms(1)
        play << WITHOUT_3 >> multi_ok(version=6)
        if step == "left_isr":
            play >> after_ms(7) >> after_ms(1)
        hears(play, *REST_IS_TOLD, "shutdown of 3: NONE")


def test_an_isr_that_it_is_not_in_is_left_without_a_write_and_at_once() -> None:
    with stops(leave_isr=8, left_isr=8) as play:
        hears(play, *ROLES_MOVE, *REPLICA_STOPS, "getData orders-1")
        play >> state(1, (1, 2), version=6)
        hears(play, *REST_IS_TOLD, "shutdown of 3: NONE")


def test_all_is_told_before_it_may_go() -> None:
    with stops(broker_may_go=6) as play:
        hears(play, *ROLES_MOVE, *REPLICA_STOPS, "getData orders-1")
        left(play)
        hears(play, *REST_IS_TOLD)
        play >> after_ms(5) >> after_ms(1) << "shutdown of 3: NONE"
