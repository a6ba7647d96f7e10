"""A run that is still going, judged: what is wrong first, and how much is right.

Beside the judgement of prefixes in points 1 to 6 there are the stalls of point 7 here (how often a
producer was told nothing for long), the delays, and a score by which two runs that both went wrong
can be told apart. Reads the real side once, and of the run each fact once: a `Partial` grows with
it. This module must not know who asks, or when.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from emulator.conformance.compare import TOLERANCE_MS, first_unequal
from emulator.conformance.delays import StopWatch, delays_of
from emulator.conformance.points import PRODUCED, StateWrite, Timed
from emulator.conformance.prefix import GRACE_MS, HARD, SOFT, Disagreement, Prefix, RealCourse
from emulator.conformance.producers import STALL_MS
from emulator.conformance.recording import ProduceResult, Recording

NEVER_MS = 1 << 62
_DELAYS, _STATES = 0, 1
_SCORED = (1, 5)
"""States and decisions: what tells best how near a run is."""


@dataclass(frozen=True)
class Contradiction:
    """What is wrong first, and how much was right by then."""

    found: Disagreement
    score: int


@dataclass(frozen=True)
class FirstStall:
    """When a producer was told nothing for long for the first time, and what it had been told."""

    since_ms: int
    until_ms: int
    count: int


class RealSide:
    """The real recording, read for this."""

    def __init__(self, real: Recording) -> None:
        self.course = RealCourse(real)
        self.acknowledged = Acknowledged()
        self.acknowledged.grow(real.results)
        self.first_stalls = dict(self.acknowledged.first_stalls())
        self.delays = delays_of(real, {})


class Partial:
    """A run on its way beside the real recording."""

    def __init__(self, real: RealSide, *, counts: bool = False) -> None:
        """`counts`: a producer that stalls for the first time must have come as far as in reality.
        No judge asks for that, but it tells at once what a leader had when it was stopped; what it
        does when it goes on, which is decided by this, comes many seconds later."""
        self.real, self._counts = real, counts
        self._prefix = Prefix(real.course)
        self._acknowledged = Acknowledged()
        self._stop_watch = StopWatch()
        self._states_seen: Counter[str] = Counter()
        self._delays_seen = 0
        self._delay: tuple[str, int] | None = None
        """The first that is too far from the recorded one."""

    def grow(self, piece: Recording) -> None:
        """What the run has shown since."""
        self._prefix.run.grow(piece)
        self._acknowledged.grow(piece.results)
        self._stop_watch.go_on(piece)
        delays = self._stop_watch.out
        if self._delay is None:
            self._delay = next(self._too_far(islice(delays.items(), self._delays_seen, None)), None)
        self._delays_seen = len(delays)

    def contradiction(self, until_ms: int, stopping: Collection[int] = ()) -> Contradiction | None:
        """In anything, by then; these brokers are about to be stopped."""
        found = (
            self._prefix.disagreement(until_ms, HARD, stopping)
            or self._prefix.disagreement(until_ms, SOFT)
            or self._stalls(until_ms)
            or (self._counted(until_ms) if self._counts else None)
            or self._delays(until_ms)
        )
        return Contradiction(found, self.score(until_ms)) if found else None

    def wrong_state(self) -> Contradiction | None:
        """A state that reality wrote otherwise, or not within the grace: there is no need to wait
        until that shows. A creation takes cold brokers as long as it does."""
        for key, lane in self._prefix.run.lanes[_STATES].items():
            real, seen = self.real.course.lanes[_STATES].get(key, []), self._states_seen[key]
            self._states_seen[key] = len(lane)
            for nth in range(seen, len(lane)):
                if found := _wrong_state(key, real[nth : nth + 1], lane[nth]):
                    return Contradiction(found, self.score(lane[nth][0] + 1))
        return None

    def score(self, until_ms: int) -> int:
        """Entries of the scored points in which the run is right, less those in which it is
        not."""
        total = 0
        for point in _SCORED:
            real = self.real.course.lanes[point]
            for key, lane in self._prefix.run.lanes[point].items():
                theirs = [entry for t, entry in lane if t < until_ms]
                alike = first_unequal([entry for _, entry in real.get(key, [])], theirs)
                total += 2 * alike - len(theirs)
        return total

    def _stalls(self, until_ms: int) -> Disagreement | None:
        """Other stalls than in reality, all through the grace: one may be about to end."""
        real, run = self.real.acknowledged, self._acknowledged
        for lane in sorted(real.times.keys() | run.times.keys()):
            ours, theirs = (
                [side.stalls(lane, ms) for ms in (until_ms - GRACE_MS, until_ms)]
                for side in (real, run)
            )
            if set(ours).isdisjoint(theirs):
                return Disagreement(until_ms, PRODUCED, lane, ours[1], theirs[1])
        return None

    def _counted(self, until_ms: int) -> Disagreement | None:
        """Too many records acknowledged before a first stall, or still too few after the grace."""
        for lane, stall in self.real.first_stalls.items():
            if stall.since_ms < until_ms <= stall.until_ms:
                ours = self._acknowledged.count(lane, until_ms)
                too_few = ours < stall.count and until_ms - stall.since_ms > GRACE_MS
                if ours > stall.count or too_few:
                    return Disagreement(until_ms, PRODUCED, lane, stall.count, ours)
        return None

    def _too_far(self, delays: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Delays so far from the recorded ones that reruns would not come near them."""
        for what, ms in delays:
            if abs(ms - self.real.delays.get(what, ms)) > TOLERANCE_MS:
                yield what, ms

    def _delays(self, until_ms: int) -> Disagreement | None:
        if self._delay is None:
            return None
        what, ms = self._delay
        return Disagreement(until_ms, _DELAYS, what, self.real.delays[what], ms)


def _wrong_state(key: str, real: list[Timed], run: Timed) -> Disagreement | None:
    """`real`: what reality wrote in this place, if anything."""
    t, entry = run
    at_ms, ours = real[0] if real else (NEVER_MS, None)
    is_created = isinstance(entry, StateWrite) and not entry.version
    if ours == entry and (at_ms <= t + GRACE_MS or is_created):
        return None
    return Disagreement(t, _STATES, key, ours, entry)


class Acknowledged:
    """By producer and partition, when records were acknowledged, and when a stall ended."""

    def __init__(self) -> None:
        self.times: dict[str, list[int]] = defaultdict(list)
        self._ends: dict[str, list[int]] = defaultdict(list)

    def grow(self, results: Iterable[ProduceResult]) -> None:
        for result in results:
            if result.result == "ok":
                self._acknowledged(result.lane, result.t)

    def _acknowledged(self, lane: str, t: int) -> None:
        times, ends = self.times[lane], self._ends[lane]
        insort(times, t)
        if times[-1] == t:
            ends += _ends_of_stalls(times[-2:])
        else:
            ends[:] = _ends_of_stalls(times)

    def count(self, lane: str, until_ms: int) -> int:
        """How many were acknowledged by then."""
        return bisect_left(self.times.get(lane, []), until_ms)

    def first_stalls(self) -> Iterator[tuple[str, FirstStall]]:
        for lane, times in sorted(self.times.items()):
            for count, (t, later) in enumerate(pairwise(times), 1):
                if later - t > STALL_MS:
                    yield lane, FirstStall(t, later, count)
                    break

    def stalls(self, lane: str, until_ms: int) -> int:
        """How many there were by then, with one that may still go on."""
        times = self.times.get(lane, [])
        before = bisect_left(times, until_ms)
        goes_on = bool(before) and until_ms - times[before - 1] > STALL_MS
        return bisect_left(self._ends.get(lane, []), until_ms) + goes_on


def _ends_of_stalls(times: list[int]) -> list[int]:
    return [later for t, later in pairwise(times) if later - t > STALL_MS]
