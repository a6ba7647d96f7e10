"""Whether a run in progress contradicts the recording, and since when.

Owns the judgement of prefixes for a guided search: both sides are compared up to one moment, and
the earliest contradiction ends a candidate. An entry of the last 250 ms that only one side has is
no contradiction yet (after a creation, 3 s). A `SideHistory` is one side, and grows piece by piece.
A `PrefixJudgement` remembers how far lanes were equal, and reads only new entries. This module must
not know how the search continues: it returns time, point and key.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import zip_longest
from operator import itemgetter

from emulator.conformance.criteria import (
    AGREED,
    EVER,
    POINTS,
    REQUESTED,
    SESSION_OF,
    Entry,
    Lanes,
    Lens,
    Timed,
    lens_of,
    zookeeper_requests,
)
from emulator.conformance.recording import Recording
from emulator.conformance.requests import Threads

GRACE_MS = 250
GRACE_OF_CREATION_MS = 3000
"""After a creation: the first logs of brokers on a slow machine took up to 2.2 s, and their roles
were announced only then."""
LOOSE_MS = 3000
"""The grace of a search that starts from a run: longer than a propagation period, so that the run
itself passes, although it was never held to the recorded times."""
UNTIMED_MS = 1 << 62
"""The grace with which only an entry that differs is a contradiction, as for the verdict: it does
not matter when something happens, if it is in order and some run's delays cover it."""
HARD = AGREED
"""Points on which the cluster must agree: a difference is a contradiction at once."""
SOFT = (2, 5, 6)
"""Points with races, retries and batches: a difference must last throughout the grace period."""

_time = itemgetter(0)


@dataclass(frozen=True)
class Disagreement:
    """The first difference of run and recording: the entry of each side (None: none)."""

    at_ms: int
    point: int
    key: str
    real: Entry | None
    run: Entry | None
    run_ms: int | None = None
    """When the run went wrong; None: it lacks an entry."""

    @property
    def race_ms(self) -> int | None:
        """When the run may have lost a race. None: what it lacks was decided long before, and so
        was the end of a session, by its last ping."""
        return None if self.key.startswith(SESSION_OF) else self.run_ms


class SideHistory:
    """One side's entries by point and key, with times, so far."""

    def __init__(self, lens: Lens) -> None:
        self.lens = lens
        self.lanes: dict[int, Lanes] = {point: defaultdict(list) for point in POINTS}
        self._threads = Threads()

    def grow(self, piece: Recording) -> None:
        """Add the next part, which must be later than all previous ones."""
        for point in POINTS:
            if point == REQUESTED:
                # A thread's request may have begun in the previous part.
                new = zookeeper_requests(piece, self.lens, self._threads)
            else:
                new = POINTS[point].gather(piece, self.lens)
            for key, lane in new.items():
                self.lanes[point][key] += sorted(lane, key=_time)


class RealCourse(SideHistory):
    """The complete real recording."""

    def __init__(self, real: Recording, requests_from_ms: int = EVER) -> None:
        super().__init__(lens_of(real, requests_from_ms))
        self.grow(real)


class PrefixJudgement:
    """A run in progress, compared with the real recording."""

    def __init__(self, real: RealCourse) -> None:
        self.real = real
        self.run = SideHistory(real.lens)
        self._alike: dict[tuple[int, str], tuple[int, int]] = {}
        """For each lane, the lengths of the equal prefixes at the last comparison."""

    def disagreement(
        self,
        until_ms: int,
        points: tuple[int, ...] = HARD,
        stopping: Collection[int] = (),
        grace_ms: int = GRACE_MS,
    ) -> Disagreement | None:
        """The earliest contradiction among entries before `until_ms` (points: HARD or SOFT). There
        is no grace for entries that a broker in `stopping` wrote in reality: in the run they would
        come after its pause, or never."""
        wrong = (
            self.in_lane(point, key, until_ms, stopping, grace_ms)
            for point in points
            for key in sorted(self.real.lanes[point].keys() | self.run.lanes[point].keys())
        )
        return min(filter(None, wrong), key=lambda d: (d.at_ms, d.point, d.key), default=None)

    def in_lane(
        self,
        point: int,
        key: str,
        until_ms: int,
        stopping: Collection[int] = (),
        grace_ms: int = GRACE_MS,
    ) -> Disagreement | None:
        """The contradiction in one lane, if any."""
        real, run = self.real.lanes[point].get(key, []), self.run.lanes[point].get(key, [])
        cut = _cut(real, until_ms), _cut(run, until_ms)
        if self._alike.get((point, key), (0, 0)) == cut:
            return None
        wrong = _first_disagreement(point, key, real[: cut[0]], run[: cut[1]])
        if wrong is None:
            self._alike[point, key] = cut
            return None
        author = getattr(wrong.real, "writer", 0) or getattr(wrong.real, "by", 0)
        if wrong.run is None and author in stopping:
            return wrong  # a stopping broker's entry, which will not follow
        if point in HARD:
            # What the run has too early is the real side's next entry, or it is wrong at once.
            expected = wrong.real
            if expected is None and cut[0] < len(self.real.lanes[point].get(key, [])):
                expected = self.real.lanes[point][key][cut[0]][1]
            differs = wrong.run is not None and wrong.run != expected
            counts = differs or wrong.at_ms < until_ms - grace_ms
        else:
            ours, theirs = (_states(point, side, until_ms, grace_ms) for side in (real, run))
            counts = ours.isdisjoint(theirs)
        return wrong if counts else None


def _cut(lane: list[Timed], until_ms: int) -> int:
    """The number of entries before that moment."""
    return bisect_left(lane, until_ms, key=_time)


def _first_disagreement(
    point: int, key: str, real: list[Timed], run: list[Timed]
) -> Disagreement | None:
    tidy = POINTS[point].tidy
    for ours, theirs in zip_longest(tidy(real), tidy(run)):
        if ours is None or theirs is None or ours[1] != theirs[1]:
            at_ms = min(timed[0] for timed in (ours, theirs) if timed)
            entry, run_ms = (theirs[1], theirs[0]) if theirs else (None, None)
            return Disagreement(at_ms, point, key, ours[1] if ours else None, entry, run_ms)
    return None


def _states(point: int, lane: list[Timed], until_ms: int, grace_ms: int) -> set[tuple[Entry, ...]]:
    """The variants of a lane without retries, at each moment of the grace period.

    A new repetition removes entries, and an incomplete batch has another order. So two sides may
    still agree if they had a common variant within the grace period.
    """
    since_ms = until_ms - grace_ms
    moments = {since_ms, *(t + 1 for t, _ in lane if since_ms <= t < until_ms)}
    cuts = {_cut(lane, ms) for ms in moments}
    tidy = POINTS[point].tidy
    return {tuple(entry for _, entry in tidy(lane[:cut])) for cut in cuts}
