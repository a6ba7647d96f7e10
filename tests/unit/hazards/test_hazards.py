"""Hazards are recognised where their pattern is, and nowhere else."""

from __future__ import annotations

from emulator.hazards.base import hazards, recognise
from emulator.invariants.base import invariants
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


def test_each_breaks_invariants_that_there_are() -> None:
    for hazard in hazards():
        assert set(hazard.breaks) <= set(invariants()), hazard.name
        assert hazard.about
