"""A run judged in progress, piece by piece, gives the same result as the whole run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.conformance.compare import NONE_SO_LONG, NONE_SO_SHORT, TOLERANCE_MS, Reference
from emulator.conformance.criteria import DELAYS, PRODUCED, Part
from emulator.conformance.delays import STALL
from emulator.conformance.producers import STALLS
from emulator.conformance.recording import Fact, ProduceResult, Recording, read_recording
from emulator.conformance.znodes import partition_of_state
from emulator.search.guided.partial import Acknowledged, RealSide, RunningJudgement
from emulator.search.guided.prefix import GRACE_MS, SOFT

RECORDINGS = Path(__file__).parents[3] / "recordings"
RANDOM_PAUSES = RECORDINGS / "repeats/kafka-2.6.3/random-pauses-6"
GAPS = (NONE_SO_SHORT, NONE_SO_LONG)
PLAYED = [RANDOM_PAUSES / "1", RANDOM_PAUSES / "4", RECORDINGS / "kafka-2.6.3/min-isr"]


@cache
def recorded(folder: Path) -> Recording:
    return read_recording(folder)


@cache
def real_side(folder: Path) -> RealSide:
    return RealSide(Reference(recorded(folder)))


@cache
def parts_of(folder: Path) -> list[Part]:
    """All that a run may be asked to be equal in besides."""
    real = real_side(folder)
    lanes = [(point, key) for point in SOFT for key in real.course.lanes[point]]
    stalls = [(PRODUCED, f"{lane}{STALLS}") for lane in real.acknowledged.times]
    gaps = [f"{what}{end}" for what in real.reference.delays for end in GAPS]
    return [*lanes, *stalls, *((DELAYS, gap) for gap in gaps)]


def piece(of: Recording, since_ms: int, until_ms: int) -> Recording:
    events = [e for e in of.events if since_ms <= e["t"] < until_ms]
    results = [r for r in of.results if since_ms <= r.t < until_ms]
    return replace(of, events=events, results=results)


@given(
    folder=st.sampled_from(PLAYED),
    cuts=st.lists(st.integers(-9000, 48_000), min_size=1, max_size=30, unique=True),
    nth=st.integers(0, 1000),
    stopping=st.sets(st.integers(1, 3)),
)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_reality_itself_is_right_at_every_moment(
    folder: Path, cuts: list[int], nth: int, stopping: set[int]
) -> None:
    partial = RunningJudgement(real_side(folder))
    wanted = parts_of(folder)
    partial.target = wanted[nth % len(wanted)]
    since_ms = -1_000_000
    for until_ms in sorted(cuts):
        partial.grow(piece(recorded(folder), since_ms, until_ms))
        assert partial.wrong_state() is None
        assert partial.contradiction(until_ms, stopping) is None
        since_ms = until_ms


def late(events: list[Fact], kind: str, by_ms: int) -> list[Fact]:
    return [{**e, "t": e["t"] + by_ms} if e["kind"] == kind else e for e in events]


@pytest.mark.parametrize(
    ("late_ms", "wrong"), [(TOLERANCE_MS + 51, NONE_SO_SHORT), (-201, NONE_SO_LONG)]
)
def test_a_wanted_delay_must_not_be_on_the_same_side_again_and_others_may(
    late_ms: int, wrong: str
) -> None:
    real = recorded(PLAYED[0])
    partial = RunningJudgement(real_side(PLAYED[0]))
    partial.grow(replace(real, events=late(real.events, "update_metadata", late_ms)))
    wanted = next(
        name for point, name in parts_of(PLAYED[0]) if point == DELAYS and "to metadata of" in name
    ).rpartition(": ")[0]
    assert partial.contradiction(5000) is None
    for gap in GAPS:
        partial.target = DELAYS, f"{wanted}{gap}"
        contradiction = partial.contradiction(5000)
        assert (contradiction is not None) == (gap == wrong)
        if contradiction is not None:
            assert (contradiction.wrong.point, contradiction.wrong.key) == (DELAYS, wanted)


def test_a_stall_is_a_delay_that_ends_where_the_recorded_one_does() -> None:
    partial = RunningJudgement(RealSide(Reference(stalling(4000, 9000))))
    partial.grow(stalling(4000, (9000, 1700)))
    for nth, end_ms in ((1, 4000), (2, 9000)):
        partial.target = part = (DELAYS, f"o-0 acks=1{STALL}{nth}{NONE_SO_LONG}")
        assert (partial.contradiction(12_000) is not None) == (nth == 2)
        assert partial.first_difference_ms(part) == end_ms


@pytest.mark.parametrize("wanted", [True, False])
def test_a_race_that_is_lost_is_a_contradiction_only_where_it_is_wanted(wanted: bool) -> None:
    real = recorded(PLAYED[0])
    lost = next(e for e in real.events if e["kind"] == "expand")
    partial = RunningJudgement(real_side(PLAYED[0]))
    partial.grow(replace(real, events=[e for e in real.events if e is not lost]))
    part = (5, f"broker {lost['broker']} {lost['topic']}-{lost['partition']}")
    partial.target = part if wanted else None
    contradiction = partial.contradiction(lost["t"] + GRACE_MS + 1)
    assert (contradiction is not None) == wanted
    assert abs(partial.first_difference_ms(part) - lost["t"]) <= 1


def stalling(*ends_ms: int | tuple[int, int]) -> Recording:
    """A record every 100 ms but in the two seconds before each of these times, or in as many ms as
    are given."""
    gaps = [end if isinstance(end, tuple) else (end, 2000) for end in ends_ms]
    times = (t for t in range(0, 20_000, 100) if not any(e - ms < t < e for e, ms in gaps))
    results = [ProduceResult(t, "o", "1", 0, "ok") for t in times]
    return Recording({"kafka": "2.6.3"}, [], results)


@pytest.mark.parametrize(
    ("ends_ms", "since_ms"),
    [((4000,), 9000), ((4000, 9000, 14_000), 14_000), ((9000,), 4000), ((6000, 9000), 4000)],
)
def test_a_stall_more_or_less_is_wrong_since_the_first_that_only_one_side_has(
    ends_ms: tuple[int, ...], since_ms: int
) -> None:
    partial = RunningJudgement(RealSide(Reference(stalling(4000, 9000))))
    partial.target = part = (PRODUCED, f"o-0 acks=1{STALLS}")
    partial.grow(stalling(*ends_ms))
    assert partial.contradiction(since_ms - 600) is None or since_ms == 4000
    assert partial.first_difference_ms(part) == since_ms


def test_a_state_that_reality_wrote_otherwise_is_wrong_when_it_is_written() -> None:
    real = recorded(PLAYED[0])
    writes = [e for e in real.events if partition_of_state(e.get("path") or "")]
    changed = next(e for e in writes if e["kind"] == "zookeeper" and e["op"] == "setData")
    altered = {**changed, "broker": 9}
    events = [altered if e is changed else e for e in real.events if e["t"] <= changed["t"]]
    partial = RunningJudgement(real_side(PLAYED[0]))
    partial.grow(replace(real, events=events))
    contradiction = partial.wrong_state()
    assert contradiction is not None
    assert (contradiction.wrong.at_ms, contradiction.wrong.point) == (changed["t"], 1)
    assert partial.wrong_state() is None  # It is reported once.


@pytest.mark.parametrize(
    ("until_ms", "stalls"), [(900, 0), (2500, 0), (2501, 1), (2700, 1), (4300, 2), (6000, 2)]
)
def test_a_stall_counts_as_soon_as_it_is_one(until_ms: int, stalls: int) -> None:
    acknowledged = Acknowledged()
    for t in (4300, 950, 1000, 2700):  # in whatever order they become known
        acknowledged.grow([ProduceResult(t, "o", "1", 0, "ok")])
    acknowledged.grow([ProduceResult(5000, "o", "1", 0, "ok")])
    assert acknowledged.stalls("o-0 acks=1", until_ms) == stalls
