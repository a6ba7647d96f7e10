"""Delta debugging: what is left fails, and no entry of it can be left out by itself."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.runs.minimize import minimize, needless


def needs_3_and_7(entries: Sequence[int]) -> bool:
    return {3, 7} <= set(entries)


def test_entries_are_left_out_until_none_can_be_missed() -> None:
    assert list(minimize(range(10), needs_3_and_7)) == [3, 7]
    assert list(minimize([], needs_3_and_7)) == []


def test_what_may_go_only_after_something_else_went_is_left_out_too() -> None:
    """5 is needed as long as 2 is there: a second pass over single entries finds it."""

    def fails(entries: Sequence[int]) -> bool:
        return 9 in entries and (2 not in entries or 5 in entries)

    assert list(minimize([5, 2, 9], fails)) == [9]


def test_needless_entries_are_named_one_by_one() -> None:
    assert needless([3, 5, 7, 9], needs_3_and_7) == [5, 9]
    assert needless([3, 7], needs_3_and_7) == []
