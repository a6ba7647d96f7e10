"""Where a guided search goes back to."""

from __future__ import annotations

from emulator.conformance.search import stopped_after
from emulator.conformance.walk import Leg


def leg(number: int, *about: int) -> Leg:
    return Leg(range(number, number + 1), (1000 * number,), about)


LEGS = [leg(0), leg(1), leg(2, 2), leg(3, 3), leg(4, 3), leg(5, 2), leg(6, 1)]
"""Boot, producers; 2 is paused, 3 is paused and goes on, 2 goes on, 1 is killed."""


def test_what_a_broker_does_when_it_goes_on_was_decided_before_it_was_stopped() -> None:
    assert stopped_after(LEGS, 5) == 1
    assert stopped_after(LEGS, 4) == 2


def test_before_a_first_disturbance_nobody_was_stopped() -> None:
    assert [stopped_after(LEGS, number) for number in (0, 1, 2, 3, 6)] == [None] * 5


def test_at_the_end_there_is_no_stimulus() -> None:
    assert stopped_after(LEGS, len(LEGS)) is None
