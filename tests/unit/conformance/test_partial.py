"""A run that is judged while it goes on: piece by piece it is what it is as a whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.conformance.compare import TOLERANCE_MS
from emulator.conformance.partial import Acknowledged, Partial, RealSide
from emulator.conformance.recording import Fact, ProduceResult, Recording, read_recording
from emulator.conformance.znodes import partition_of_state

RECORDINGS = Path(__file__).parents[2] / "recordings"
RANDOM_PAUSES = RECORDINGS / "repeats/kafka-2.6.3/random-pauses-6"
PLAYED = [RANDOM_PAUSES / "1", RANDOM_PAUSES / "4", RECORDINGS / "kafka-2.6.3/min-isr"]


@cache
def recorded(folder: Path) -> Recording:
    return read_recording(folder)


@cache
def real_side(folder: Path) -> RealSide:
    return RealSide(recorded(folder))


def piece(of: Recording, since_ms: int, until_ms: int) -> Recording:
    events = [e for e in of.events if since_ms <= e["t"] < until_ms]
    results = [r for r in of.results if since_ms <= r.t < until_ms]
    return replace(of, events=events, results=results)


@given(
    folder=st.sampled_from(PLAYED),
    cuts=st.lists(st.integers(-9000, 48_000), min_size=1, max_size=30, unique=True),
    counts=st.booleans(),
    stopping=st.sets(st.integers(1, 3)),
)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_reality_itself_is_right_at_every_moment(
    folder: Path, cuts: list[int], counts: bool, stopping: set[int]
) -> None:
    partial = Partial(real_side(folder), counts=counts)
    since_ms = -1_000_000
    for until_ms in sorted(cuts):
        partial.grow(piece(recorded(folder), since_ms, until_ms))
        assert partial.wrong_state() is None
        assert partial.contradiction(until_ms, stopping) is None
        since_ms = until_ms


def late(events: list[Fact], kind: str, by_ms: int) -> list[Fact]:
    return [{**e, "t": e["t"] + by_ms} if e["kind"] == kind else e for e in events]


def test_a_delay_that_no_rerun_would_come_near_is_a_contradiction() -> None:
    real = recorded(PLAYED[0])
    partial = Partial(real_side(PLAYED[0]))
    partial.grow(replace(real, events=late(real.events, "update_metadata", TOLERANCE_MS + 51)))
    contradiction = partial.contradiction(5000)
    assert contradiction is not None
    assert contradiction.found.point == 0
    assert "to metadata of broker" in contradiction.found.key


def test_a_state_that_reality_wrote_otherwise_is_wrong_when_it_is_written() -> None:
    real = recorded(PLAYED[0])
    writes = [e for e in real.events if partition_of_state(e.get("path") or "")]
    changed = next(e for e in writes if e["kind"] == "zookeeper" and e["op"] == "setData")
    altered = {**changed, "broker": 9}
    events = [altered if e is changed else e for e in real.events if e["t"] <= changed["t"]]
    partial = Partial(real_side(PLAYED[0]))
    partial.grow(replace(real, events=events))
    contradiction = partial.wrong_state()
    assert contradiction is not None
    assert (contradiction.found.at_ms, contradiction.found.point) == (changed["t"], 1)
    assert partial.wrong_state() is None  # It is told once.


@pytest.mark.parametrize(
    ("until_ms", "stalls"), [(900, 0), (2500, 0), (2501, 1), (2700, 1), (4300, 2), (6000, 2)]
)
def test_a_stall_counts_as_soon_as_it_is_one(until_ms: int, stalls: int) -> None:
    acknowledged = Acknowledged()
    for t in (4300, 950, 1000, 2700):  # in whatever order they become known
        acknowledged.grow([ProduceResult(t, "o", "1", 0, "ok")])
    acknowledged.grow([ProduceResult(5000, "o", "1", 0, "ok")])
    assert acknowledged.stalls("o-0 acks=1", until_ms) == stalls


STALLS_AT_MS = 1000


def stalling(counted: int) -> Recording:
    """`counted` records are acknowledged, ten each second; then nothing for two seconds."""
    acknowledged = [STALLS_AT_MS + 100 * (k - 9) for k in range(counted)]
    results = [ProduceResult(t, "o", "1", 0, "ok") for t in [*acknowledged, 4000]]
    return Recording({"kafka": "2.6.3"}, [], results)


@pytest.mark.parametrize(
    ("counted", "until_ms", "wrong"),
    [
        (10, STALLS_AT_MS + 260, False),
        (11, STALLS_AT_MS + 260, True),
        (9, STALLS_AT_MS + 240, False),  # The last one may still come.
        (9, STALLS_AT_MS + 260, True),
        (11, 4001, False),  # It is over, and the judge never asks.
    ],
)
def test_a_producer_stalls_after_as_many_records_as_in_reality(
    counted: int, until_ms: int, wrong: bool
) -> None:
    real = RealSide(stalling(10))
    for counts in (True, False):
        partial = Partial(real, counts=counts)
        partial.grow(piece(stalling(counted), -1000, until_ms))
        assert (partial.contradiction(until_ms) is not None) == (counts and wrong)
