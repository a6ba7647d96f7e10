"""Strategies: what is passed over stays late, with a single choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.search.schedules.schedule import Candidate, Choice
from emulator.search.schedules.strategies import WrittenOrder


@pytest.fixture(autouse=True, scope="module")
def options_are_words() -> Any:
    """The letter is the option, and its label."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("emulator.search.schedules.strategies.label_of", str)
        yield


def steps(*choices: Choice, depth: int = 20) -> WrittenOrder:
    return WrittenOrder(depth, Candidate(choices), exactly=False)


def happens(strategy: WrittenOrder, *offered: str) -> str:
    """The chosen option of each step."""
    choose: Any = strategy.choose
    return "".join(options[choose(list(options))] for options in offered)


def test_what_is_passed_over_is_late_until_it_happens() -> None:
    strategy = steps(Choice(0, 1, what="b"))
    assert happens(strategy, "abc", "acd", "ade", "ae") == "bcde"
    assert strategy.late == ("a",)
    assert [(one.step, one.take, one.over) for one in strategy.choices] == [(0, 1, "a")]


def test_of_all_that_is_late_the_first_that_was_passed_over_is_next() -> None:
    strategy = steps(Choice(0, 1, what="b"), Choice(1, 1, what="d"))
    assert happens(strategy, "abc", "acd", "ac") == "bda"
    assert strategy.late == ("c",)
    assert [one.over for one in strategy.choices] == ["a", "c"]


def test_what_has_happened_meanwhile_and_comes_again_is_not_late() -> None:
    strategy = steps(Choice(0, 1, what="b"))
    assert happens(strategy, "ab", "cd", "ac") == "bca"


def test_a_schedule_is_as_long_as_something_is_chosen_or_late() -> None:
    strategy = steps(Choice(1, 1, what="c"))
    happens(strategy, "ab", "bc", "bd", "be")
    assert strategy.needed == 4
    happens(strategy, "ef", "fg")
    assert strategy.needed == 4
    assert steps().needed == 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_whatever_is_wanted_next_can_be_chosen(wanted: Sequence[int]) -> None:
    """All orders are there: none is lost because something is late."""
    left, order, choices = list("abcdefghijklmnop"), "", list[Choice]()
    for step, place in enumerate(wanted):
        trial = steps(*choices)
        replayed = list("abcdefghijklmnop")
        for done in order:
            options = replayed[:4]
            assert options[trial.choose(options)] == done  # type: ignore[arg-type]
            replayed.remove(done)
        options = left[:4]
        by_itself = trial._in_order(options)  # type: ignore[arg-type]
        take = list(by_itself).index(options[place])  # type: ignore[arg-type]
        choices += [Choice(step, take, what=options[place])] if take else []
        order += options[place]
        left.remove(options[place])
    whole = steps(*choices)
    assert happens(whole, *offered(order)) == order


def offered(order: str) -> list[str]:
    left, found = list("abcdefghijklmnop"), []
    for done in order:
        found.append("".join(left[:4]))
        left.remove(done)
    return found
