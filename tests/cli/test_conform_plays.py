"""The output of `isr conform` for live plays: each with the races that it lost."""

from __future__ import annotations

import pytest

from emulator.cli.parts.conform_report import play_lines
from emulator.conformance.compare import Difference, Examined, Verdict

Lane = tuple[str, ...]
NONE: Lane = ()


def differs(point: int, key: str, real: Lane, run: Lane) -> Difference:
    return Difference(point, key, 4, ("before",), real, run)


def play(seed: int, *lost: Difference) -> Examined:
    points = {point: tuple(d for d in lost if d.point == point) for point in range(1, 8)}
    return Examined(f"seed {seed}", points, {})


def verdict(agreeing: int, *lost: Difference) -> Verdict:
    runs = tuple(f"seed {seed}" for seed in range(1, agreeing + 1))
    return Verdict("x", not lost, 2, runs, {}, {}, "seed 1", {}, lost, ())


WATCHED = differs(6, "broker 1 start-up", ("exists /a", "exists /b"), ("exists /b", "exists /a"))
ELECTED = differs(1, "orders-0", ("leader 1",), ("leader 2",))


def test_each_play_is_named_with_what_it_lost() -> None:
    lines = list(play_lines([play(4, WATCHED), play(9, ELECTED), play(2)], verdict(2)))
    assert lines == [
        "x: 3 live plays",
        "  play 1, seed 4: agrees; lost: broker 1 start-up (ZooKeeper requests)",
        "  play 2, seed 9: does not agree; lost: orders-0 (state history)",
        "  play 3, seed 2: agrees; lost none",
    ]


def test_what_no_play_won_is_shown_from_both_sides() -> None:
    plays = [play(4, WATCHED), play(9, WATCHED)]
    assert list(play_lines(plays, verdict(2, WATCHED)))[3:] == [
        "  lost by every play that agrees",
        "    ZooKeeper requests, broker 1 start-up, entry 4",
        "      both  before",
        "      real  exists /a",
        "            exists /b",
        "      run   exists /b",
        "            exists /a",
        "      the same entries in another order",
    ]


def test_where_none_agrees_it_is_the_nearest_one_that_is_shown() -> None:
    lines = list(play_lines([play(9, ELECTED)], verdict(0, ELECTED)))
    assert "  lost by every play (the nearest is shown)" in lines


@pytest.mark.parametrize(
    ("real", "run", "words"),
    [
        (("a",), NONE, "only the recorded cluster has it"),
        (NONE, ("a",), "only the emulated run has it"),
        (("a", "b"), ("b", "a"), "the same entries in another order"),
        (("a", "b"), ("c", "a"), "the emulated run has an additional entry before it"),
        (("c", "a"), ("a", "b"), "the emulated run lacks an entry before it"),
        (("a", "b"), ("c", "d"), "something else happened first"),
    ],
)
def test_the_kind_of_race_is_said(real: Lane, run: Lane, words: str) -> None:
    lost = differs(6, "broker 1", real, run)
    assert list(play_lines([play(1, lost)], verdict(1, lost)))[-1] == f"      {words}"
