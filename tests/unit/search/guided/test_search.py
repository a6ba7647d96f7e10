"""Where a guided search goes back to, and what it searches next."""

from __future__ import annotations

import pytest

from emulator.conformance.compare import Difference, Examined, Reference
from emulator.conformance.criteria import Part
from emulator.conformance.recording import Recording
from emulator.kernel.rng import Choice
from emulator.search.guided.guided_run import SegmentGroup, group_at
from emulator.search.guided.partial import RealSide
from emulator.search.guided.search import (
    AgreeingRun,
    choices_by_group,
    still_missing,
    stopped_after,
)


def group(number: int, *about: int) -> SegmentGroup:
    return SegmentGroup(range(number, number + 1), (1000 * number,), about)


GROUPS = [group(0), group(1), group(2, 2), group(3, 3), group(4, 3), group(5, 2), group(6, 1)]
"""Boot, producers; 2 is paused, 3 is paused and resumed, 2 resumed, 1 is killed."""


def test_what_a_broker_does_when_it_goes_on_was_decided_before_it_was_stopped() -> None:
    assert stopped_after(GROUPS, 5) == 1
    assert stopped_after(GROUPS, 4) == 2


def test_before_a_first_disturbance_nobody_was_stopped() -> None:
    assert [stopped_after(GROUPS, number) for number in (0, 1, 2, 3, 6)] == [None] * 5


def test_at_the_end_there_is_no_action() -> None:
    assert stopped_after(GROUPS, len(GROUPS)) is None


def test_a_session_ends_when_its_pings_say_and_these_follow_the_last_request() -> None:
    request = {"kind": "zookeeper_request", "op": "getData", "path": "/config/topics/t"}
    facts = [{**request, "t": 1500, "broker": 1}, {**request, "t": 3500, "broker": 2}]
    real = RealSide(Reference(Recording({"kind": "settings", "kafka": "2.6.3"}, facts)))
    assert group_at(GROUPS, real.last_request_ms(1, before_ms=5000)) == 2
    assert group_at(GROUPS, real.last_request_ms(2, before_ms=5000)) == 4
    assert real.last_request_ms(2, before_ms=3500) == -1
    assert group_at(GROUPS, 99_000) == 6


def lacking(*parts: Part) -> AgreeingRun:
    differences = {5: tuple(Difference(*part, 0, (), (), ()) for part in parts)}
    examined = Examined("seed 1", differences, {})
    return AgreeingRun(1, {}, examined, examined.lacking)


A, B, C = (5, "a"), (5, "b"), (5, "c")


@pytest.mark.parametrize(
    ("before", "found", "missing"),
    [
        (None, [lacking(A, B)], [A, B]),
        (None, [lacking(A, B), lacking(B, C)], [B]),
        ([B, C], [lacking(A, B)], [B]),
        ([C], [lacking(A, B)], []),
        ([], [lacking(A)], []),
    ],
)
def test_what_is_still_missing_is_what_no_run_has_of_this_search_or_before(
    before: list[Part] | None, found: list[AgreeingRun], missing: list[Part]
) -> None:
    assert still_missing(before, found) == missing


def test_each_choice_of_a_run_belongs_to_the_group_in_which_it_holds_first() -> None:
    """Segment 2 is divided after two and after four seconds."""
    groups = [
        SegmentGroup(range(1), (0,)),
        SegmentGroup(range(1, 3), (2000,)),
        SegmentGroup(range(2, 3), (4000,), since_us=2_000_137),
        SegmentGroup(range(2, 3), (6000,), since_us=4_000_137),
    ]
    by_group: list[dict[Choice, int]] = [
        {(0, "", ""): 10, (0, "broker-1", "net_request"): 11},
        {(1, "", ""): 20, (2, "broker-1", "net_request"): 21, (2, "", "1500000"): 22},
        {(2, "", "2000137"): 30, (2, "broker-1@2000137", "net_request"): 31},
        {(2, "", "4000137"): 40, (2, "", "5000000"): 41},
    ]
    whole = {choice: seed for choices in by_group for choice, seed in choices.items()}
    assert choices_by_group(groups, whole) == dict(enumerate(by_group))
    assert choices_by_group(groups, {}) == {0: {}, 1: {}, 2: {}, 3: {}}
