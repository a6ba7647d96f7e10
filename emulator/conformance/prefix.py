"""Does a run that is still going contradict the recording, and since when?

Owns the judgement of prefixes for a guided search: both sides are read up to one moment, and the
earliest contradiction ends a draw. What only one side has in the last 250 ms may still come on
the other and is no contradiction yet. `RealCourse` reads the real side once; each call reads the
run only. This module must not know how the search goes on: it names time, point and key.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from emulator.conformance.points import (
    AGREED,
    EVER,
    POINTS,
    Entry,
    Lanes,
    Timed,
    all_keys,
    lanes_of,
    lens_of,
)
from emulator.conformance.recording import Recording

GRACE_MS = 250
HARD = AGREED
"""What a cluster agreed on: two entries that differ contradict each other at once."""
SOFT = (2, 5, 6)
"""Races, retries and batches: two entries that differ must also be older than the grace."""


@dataclass(frozen=True)
class Disagreement:
    """Where a run leaves the recording: the entry that each side has there (None: none)."""

    at_ms: int
    point: int
    key: str
    real: Entry | None
    run: Entry | None


class RealCourse:
    """The course of the real recording, by point and key, with times."""

    def __init__(self, real: Recording, requests_from_ms: int = EVER) -> None:
        self.lens = lens_of(real, requests_from_ms)
        self.lanes = {point: lanes_of(point, real, self.lens) for point in POINTS}

    def of_run(self, point: int, run: Recording) -> Lanes:
        return lanes_of(point, run, self.lens)


def prefix_disagreement(
    real: RealCourse, run: Recording, until_ms: int, points: tuple[int, ...] = HARD
) -> Disagreement | None:
    """The earliest contradiction among entries before `until_ms` (points: HARD or SOFT)."""
    found = (
        disagreement
        for point in points
        for disagreement in _in_point(point, real.lanes[point], real.of_run(point, run), until_ms)
    )
    return min(found, key=lambda d: (d.at_ms, d.point, d.key), default=None)


def _in_point(point: int, real: Lanes, run: Lanes, until_ms: int) -> Iterator[Disagreement]:
    for key in all_keys(real, run):
        ours, theirs = _before(real.get(key, []), until_ms), _before(run.get(key, []), until_ms)
        found = _first_disagreement(point, key, ours, theirs)
        if found and _counts(found, until_ms):
            yield found


def _before(lane: list[Timed], until_ms: int) -> list[Timed]:
    return [timed for timed in lane if timed[0] < until_ms]


def _first_disagreement(
    point: int, key: str, real: list[Timed], run: list[Timed]
) -> Disagreement | None:
    for ours, theirs in zip_longest(real, run):
        if ours is None or theirs is None or ours[1] != theirs[1]:
            return _disagreement(point, key, ours, theirs)
    return None


def _disagreement(point: int, key: str, real: Timed | None, run: Timed | None) -> Disagreement:
    at_ms = min(timed[0] for timed in (real, run) if timed)
    return Disagreement(at_ms, point, key, real[1] if real else None, run[1] if run else None)


def _counts(found: Disagreement, until_ms: int) -> bool:
    differs = found.real is not None and found.run is not None
    return (differs and found.point in HARD) or found.at_ms < until_ms - GRACE_MS
