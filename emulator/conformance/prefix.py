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
    lens_of,
)
from emulator.conformance.recording import Recording

GRACE_MS = 250
HARD = AGREED
"""What a cluster agreed on: two entries that differ contradict each other at once."""
SOFT = (2, 5, 6)
"""Races, retries and batches: they must have been apart all through the grace."""


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
        self.lanes = {point: POINTS[point].gather(real, self.lens) for point in POINTS}
        self._before: dict[tuple[int, int], Lanes] = {}

    def before(self, point: int, until_ms: int) -> Lanes:
        """Kept, for a search asks about the same few moments again and again."""
        if (point, until_ms) not in self._before:
            lanes = self.lanes[point].items()
            tidied = {key: _before(point, lane, until_ms) for key, lane in lanes}
            self._before[point, until_ms] = tidied
        return self._before[point, until_ms]


def prefix_disagreement(
    real: RealCourse, run: Recording, until_ms: int, points: tuple[int, ...] = HARD
) -> Disagreement | None:
    """The earliest contradiction among entries before `until_ms` (points: HARD or SOFT)."""
    found = (
        disagreement for point in points for disagreement in _in_point(point, real, run, until_ms)
    )
    return min(found, key=lambda d: (d.at_ms, d.point, d.key), default=None)


def _in_point(
    point: int, real: RealCourse, run: Recording, until_ms: int
) -> Iterator[Disagreement]:
    known, lanes = real.before(point, until_ms), POINTS[point].gather(run, real.lens)
    for key in all_keys(known, lanes):
        lane = lanes.get(key, [])
        found = _first_disagreement(point, key, known.get(key, []), _before(point, lane, until_ms))
        if found and _counts(found, real.lanes[point].get(key, []), lane, until_ms):
            yield found


def _before(point: int, lane: list[Timed], until_ms: int) -> list[Timed]:
    return POINTS[point].tidy([timed for timed in lane if timed[0] < until_ms])


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


def _counts(found: Disagreement, real: list[Timed], run: list[Timed], until_ms: int) -> bool:
    if found.point in HARD:
        differs = found.real is not None and found.run is not None
        return differs or found.at_ms < until_ms - GRACE_MS
    return _states(found.point, real, until_ms).isdisjoint(_states(found.point, run, until_ms))


def _states(point: int, lane: list[Timed], until_ms: int) -> set[tuple[Entry, ...]]:
    """What a lane was, once tidied, at each moment of the grace.

    A repeat that has come takes entries away, and a batch half sent is in another order: so two
    sides may still agree if both were in one state, each at some moment of the grace.
    """
    since_ms = until_ms - GRACE_MS
    moments = {since_ms, *(t + 1 for t, _ in lane if since_ms <= t < until_ms)}
    return {tuple(entry for _, entry in _before(point, lane, ms)) for ms in moments}
