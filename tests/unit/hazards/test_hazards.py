"""Hazards are recognised where their pattern is, and nowhere else."""

from __future__ import annotations

from emulator.hazards.base import hazards, recognise
from emulator.invariants.base import Violation, invariants
from emulator.trace import events as e
from emulator.trace.values import PartitionState
from tests.unit.invariants.history import ORDERS, History, violations


def shrinking(*replicas: int) -> History:
    """The leader is told these replicas, with 3 in the ISR; then its high watermark passes 3."""
    history = History().started(1, 2, 3).elected().created()
    history.wrote(3, 1, 1, 1, 2, 3, by="controller")
    state = PartitionState(ORDERS, 1, 1, 1, (1, 2, 3), 1, replicas)
    history.tell(e.LeaderAndIsr, 1, 3, 1, state).tell(e.BecomesLeader, 1, ORDERS, 1, 0, 0)
    return history.appended(1, 0, 5, epoch=1).copied(0, 5, 2, epoch=1).hw(1, 5)


def names(history: History) -> set[str]:
    return {
        recognise(violation, history.events)
        for violation in violations(history)
        if violation.invariant == "hw within isr"
    }


def test_a_member_of_the_isr_that_is_no_replica_any_more() -> None:
    assert names(shrinking(1, 2)) == {"KAFKA-9672"}


def test_a_member_that_is_a_replica_is_our_fault() -> None:
    assert names(shrinking(1, 2, 3)) == {""}


def crippled(controller: int, *, again: bool = False) -> History:
    """A transition of this broker's controller finds its batch half full; `again`: then the broker
    starts anew."""
    history = History().started(1, 2, 3).elected()
    error = "IllegalState: the batch is not empty: StopReplica to [3] was not sent"
    history.tell(e.ThreadFailed, controller, "replicas to OfflineReplica", error)
    return history.tell(e.BrokerStarting, controller, "2.6") if again else history


LEFT = Violation("nothing is left to do", "/isr_change_notification/x is still there", (-1, 1))


def test_a_controller_whose_batch_was_left_half_full() -> None:
    history = crippled(elected_by(crippled(1)))
    assert recognise(LEFT, history.events) == "KAFKA-12315"


def test_a_broker_that_is_not_controller_cripples_nobody() -> None:
    other = next(b for b in (1, 2, 3) if b != elected_by(crippled(1)))
    assert recognise(LEFT, crippled(other).events) == ""


def test_a_new_process_begins_with_empty_batches() -> None:
    history = crippled(elected_by(crippled(1)), again=True)
    assert recognise(LEFT, history.events) == ""


def elected_by(history: History) -> int:
    return next(x.broker for x in history.events if isinstance(x, e.ControllerElected))


def test_a_command_for_a_partition_that_never_had_a_leader() -> None:
    history = History().started(1, 2, 3).elected()
    before = len(history.events)
    error = "IllegalState: nothing is known of the leader of orders-0"
    history.tell(e.ThreadFailed, 1, "ReplicaLeaderElection", error)
    stays = "/admin/preferred_replica_election is still there"
    stuck = Violation("nothing is left to do", stays, (-1, before))
    assert recognise(stuck, history.events) == "stuck election command"
    written_later = Violation("nothing is left to do", stays, (-1, before + 1))
    assert recognise(written_later, history.events) == ""
    assert recognise(LEFT, history.events) == ""


def test_a_fail_over_that_such_a_command_ends() -> None:
    history = History().started(1, 2, 3).elected()
    nobody = Violation("a controller is there", "there is no controller", (-1, 1))
    error = "IllegalState: nothing is known of the leader of orders-0"
    history.tell(e.ThreadFailed, 1, "election", error)
    assert recognise(nobody, history.events) == "stuck election command"
    assert recognise(nobody, history.elected(2).events) == ""


def test_each_breaks_invariants_that_there_are() -> None:
    for hazard in hazards():
        assert set(hazard.breaks) <= set(invariants()), hazard.name
        assert hazard.about
