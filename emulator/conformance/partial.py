"""A run that is still going, judged: what is wrong first, and how much is right.

Beside the judgement of prefixes in points 1 to 6 there are the stalls of point 7 here (how often a
producer was told nothing for long), the delays, and a score by which two runs that both went wrong
can be told apart. Reads the real side once. This module must not know who asks, or when.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from emulator.conformance.compare import TOLERANCE_MS, first_unequal
from emulator.conformance.delays import delays_of
from emulator.conformance.points import POINTS, PRODUCED, StateWrite, all_keys
from emulator.conformance.prefix import (
    GRACE_MS,
    HARD,
    SOFT,
    Disagreement,
    RealCourse,
    prefix_disagreement,
)
from emulator.conformance.producers import STALL_MS
from emulator.conformance.recording import Recording

Acknowledged: TypeAlias = Mapping[str, list[int]]
"""By producer and partition, when records were acknowledged, in order."""

NEVER_MS = 1 << 62
_DELAYS, _STATES = 0, 1
_SCORED = (1, 5)
"""States and decisions: what tells best how near a run is."""


@dataclass(frozen=True)
class Contradiction:
    """What is wrong first, and how much was right by then."""

    found: Disagreement
    score: int


class RealSide:
    """The real recording, read for this."""

    def __init__(self, real: Recording) -> None:
        self.course = RealCourse(real)
        self._acknowledged = _acknowledged(real)
        self._recorded = delays_of(real, {})

    def contradiction(self, run: Recording, until_ms: int) -> Contradiction | None:
        """In anything, by then."""
        found = (
            prefix_disagreement(self.course, run, until_ms, HARD)
            or prefix_disagreement(self.course, run, until_ms, SOFT)
            or self._stalls(run, until_ms)
            or self._delays(run, until_ms)
        )
        return Contradiction(found, score(self.course, run, until_ms)) if found else None

    def wrong_state(self, run: Recording) -> Contradiction | None:
        """A state that reality wrote otherwise, or not within the grace: there is no need to wait
        until that shows. A creation takes cold brokers as long as it does."""
        for key, lane in POINTS[_STATES].gather(run, self.course.lens).items():
            real = self.course.lanes[_STATES].get(key, [])
            for nth, (t, entry) in enumerate(lane):
                at_ms, ours = real[nth] if nth < len(real) else (NEVER_MS, None)
                is_created = isinstance(entry, StateWrite) and not entry.version
                if ours != entry or (at_ms > t + GRACE_MS and not is_created):
                    found = Disagreement(t, _STATES, key, ours, entry)
                    return Contradiction(found, score(self.course, run, t + 1))
        return None

    def _stalls(self, run: Recording, until_ms: int) -> Disagreement | None:
        """Other stalls than in reality, all through the grace: one may be about to end."""
        emulated = _acknowledged(run)
        moments = (until_ms - GRACE_MS, until_ms)
        for lane in all_keys(self._acknowledged, emulated):
            ours = [_count(self._acknowledged.get(lane, []), ms) for ms in moments]
            theirs = [_count(emulated.get(lane, []), ms) for ms in moments]
            if set(ours).isdisjoint(theirs):
                return Disagreement(until_ms, PRODUCED, lane, ours[1], theirs[1])
        return None

    def _delays(self, run: Recording, until_ms: int) -> Disagreement | None:
        """A delay so far from the recorded one that reruns would not come near it."""
        for what, ms in delays_of(run, {}).items():
            real_ms = self._recorded.get(what, ms)
            if abs(ms - real_ms) > TOLERANCE_MS:
                return Disagreement(until_ms, _DELAYS, what, real_ms, ms)
        return None


def _acknowledged(recording: Recording) -> Acknowledged:
    lanes: dict[str, list[int]] = defaultdict(list)
    for result in recording.results:
        if result.result == "ok":
            lanes[result.lane].append(result.t)
    return {lane: sorted(times) for lane, times in lanes.items()}


def _count(times: list[int], until_ms: int) -> int:
    """How many stalls there were by then, with one that may still go on."""
    before = times[: bisect_left(times, until_ms)]
    return sum(later - t > STALL_MS for t, later in pairwise([*before, until_ms])) if before else 0


def score(real: RealCourse, run: Recording, until_ms: int) -> int:
    """Entries of the scored points in which the run is right, less those in which it is not."""
    total = 0
    for point in _SCORED:
        lanes = POINTS[point].gather(run, real.lens)
        for key in all_keys(real.lanes[point], lanes):
            theirs = [entry for t, entry in lanes.get(key, []) if t < until_ms]
            alike = first_unequal([entry for _, entry in real.lanes[point].get(key, [])], theirs)
            total += 2 * alike - len(theirs)
    return total
