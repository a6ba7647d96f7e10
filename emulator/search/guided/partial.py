"""Judges a run in progress: its first error, and how much is right.

State history, controllers and control requests must match at every moment. Each other part must
match in only one of several runs: a `RunningJudgement` can check one such part. A score ranks two
failed runs. The real side is read once, and each fact of the run once. This module does not know
when it is called.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from emulator.conformance.compare import NONE_SO_LONG, NONE_SO_SHORT, Reference, first_unequal
from emulator.conformance.criteria import DELAYS, PRODUCED, Part, StateWrite
from emulator.conformance.delays import STALL, StopWatch
from emulator.conformance.producers import STALL_MS, STALLS
from emulator.conformance.recording import ProduceResult, Recording
from emulator.search.guided.prefix import (
    GRACE_MS,
    HARD,
    SOFT,
    Disagreement,
    PrefixJudgement,
    RealCourse,
)

NEVER_MS = 1 << 62
_STATES = 1
_SCORED = (1, 5)
"""States and decisions: they show best how similar a run is."""


@dataclass(frozen=True)
class Contradiction:
    """The first error, and at that time how much was right: of states and decisions, and of the
    part that must match, too."""

    wrong: Disagreement
    score: tuple[int, int]


class RealSide:
    """The real recording, prepared for comparison."""

    def __init__(self, reference: Reference) -> None:
        real = reference.real
        self.reference = reference
        self.course = RealCourse(real)
        self.acknowledged = Acknowledged()
        self.acknowledged.grow(real.results)
        self._stop_watch = StopWatch()
        self._stop_watch.add(real)
        self._requests = [(fact["t"], fact["broker"]) for fact in real.of("zookeeper_request")]

    def last_request_ms(self, broker: int, before_ms: int) -> int:
        """When the broker sent its last recorded request before that moment; -1: none."""
        times = (t for t, sender in self._requests if sender == broker and t < before_ms)
        return max(times, default=-1)

    def delay_ended_ms(self, what: str) -> int:
        lane, _, nth = what.partition(STALL)
        return (
            self.acknowledged.ends(lane)[int(nth) - 1] if nth else self._stop_watch.ended_ms[what]
        )


class RunningJudgement:
    """A run in progress, compared with the real recording."""

    def __init__(self, real: RealSide) -> None:
        self.real = real
        self.target: Part | None = None
        """A further part that must match."""
        self._prefix = PrefixJudgement(real.course)
        self._acknowledged = Acknowledged()
        self._stop_watch = StopWatch()
        self._states_seen: Counter[str] = Counter()

    def grow(self, piece: Recording) -> None:
        """Add the run's next part."""
        self._prefix.run.grow(piece)
        self._acknowledged.grow(piece.results)
        self._stop_watch.add(piece)

    def contradiction(
        self,
        until_ms: int,
        stopping: Collection[int] = (),
        grace_ms: int = GRACE_MS,
        target_grace_ms: int = GRACE_MS,
    ) -> Contradiction | None:
        """The first contradiction before `until_ms`; the brokers in `stopping` are about to be
        stopped. `grace_ms`: for how long only one side may have an entry; `target_grace_ms`: the
        same in the part that must match, too."""
        wrong = self._prefix.disagreement(until_ms, HARD, stopping, grace_ms)
        if wrong is None and self.target is not None:
            wrong = self._in_part(*self.target, until_ms, target_grace_ms)
        return Contradiction(wrong, self.score(until_ms)) if wrong else None

    def wrong_state(self, grace_ms: int = GRACE_MS) -> Contradiction | None:
        """A state that differs from the recording, or was not written there within the grace: it is
        wrong at once. Creations are exempt, because cold brokers are slow."""
        for key, lane in self._prefix.run.lanes[_STATES].items():
            real, seen = self.real.course.lanes[_STATES].get(key, []), self._states_seen[key]
            self._states_seen[key] = len(lane)
            for nth in range(seen, len(lane)):
                t, entry = lane[nth]
                real_ms, expected = real[nth] if nth < len(real) else (NEVER_MS, None)
                is_created = isinstance(entry, StateWrite) and not entry.version
                if expected != entry or (real_ms > t + grace_ms and not is_created):
                    wrong = Disagreement(t, _STATES, key, expected, entry, t)
                    return Contradiction(wrong, self.score(t + 1))
        return None

    def score(self, until_ms: int) -> tuple[int, int]:
        """The number of correct entries minus the number of wrong ones: in the scored points, and
        in the target's lane."""
        lanes = self._prefix.run.lanes
        total = sum(self._right(point, key, until_ms) for point in _SCORED for key in lanes[point])
        point, key = self.target or (DELAYS, "")
        return total, self._right(point, key, until_ms) if point in SOFT else 0

    def _right(self, point: int, key: str, until_ms: int) -> int:
        real = [entry for _, entry in self.real.course.lanes[point].get(key, [])]
        run = self._prefix.run.lanes[point].get(key, [])
        theirs = [entry for t, entry in run if t < until_ms]
        return 2 * first_unequal(real, theirs) - len(theirs)

    def first_difference_ms(self, part: Part) -> int:
        """For a finished run: the time of the first difference in this part."""
        point, key = part
        if point == DELAYS:
            return self.real.delay_ended_ms(_delay_of(key))
        if point in SOFT and (wrong := self._prefix.in_lane(point, key, NEVER_MS)):
            return wrong.at_ms
        lane, differing = key.removesuffix(STALLS), list[int]()
        stalls = (self.real.acknowledged.ends(lane), self._acknowledged.ends(lane))
        for real_ms, run_ms in zip_longest(*stalls):
            if real_ms is None or run_ms is None or abs(real_ms - run_ms) > STALL_MS:
                differing += [ms for ms in (real_ms, run_ms) if ms is not None]
        return min(differing, default=0)

    def _in_part(self, point: int, key: str, until_ms: int, grace_ms: int) -> Disagreement | None:
        if point in SOFT:
            return self._prefix.in_lane(point, key, until_ms, grace_ms=grace_ms)
        if point == DELAYS:
            reference, what = self.real.reference, _delay_of(key)
            run_ms = self._delay_ms(what)
            if run_ms is None:
                return None
            misses = (
                reference.is_too_long if key.endswith(NONE_SO_SHORT) else reference.is_too_short
            )
            if not misses(what, run_ms):
                return None
            return Disagreement(until_ms, DELAYS, what, reference.delays[what], run_ms, until_ms)
        # The number of stalls differs throughout the grace period, so it is not just one that is
        # about to end.
        lane, moments = key.removesuffix(STALLS), (until_ms - GRACE_MS, until_ms)
        ours, theirs = (
            [side.stalls(lane, ms) for ms in moments]
            for side in (self.real.acknowledged, self._acknowledged)
        )
        if set(ours).isdisjoint(theirs):
            return Disagreement(until_ms, PRODUCED, key, ours[1], theirs[1], until_ms)
        return None

    def _delay_ms(self, what: str) -> int | None:
        """The run's delay; None: not yet."""
        lane, _, nth = what.partition(STALL)
        if not nth:
            return self._stop_watch.out.get(what)
        lengths_ms = self._acknowledged.stall_lengths_ms(lane)
        return lengths_ms[int(nth) - 1] if len(lengths_ms) >= int(nth) else None


def _delay_of(gap: str) -> str:
    return gap.removesuffix(NONE_SO_SHORT).removesuffix(NONE_SO_LONG)


class Acknowledged:
    """The times of acknowledgements and the stalls, by producer and partition."""

    def __init__(self) -> None:
        self.times: dict[str, list[int]] = defaultdict(list)
        self._stalls: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """The last acknowledgement before each stall, and the first one after it."""

    def grow(self, results: Iterable[ProduceResult]) -> None:
        for result in results:
            if result.result == "ok":
                times, stalls = self.times[result.lane], self._stalls[result.lane]
                insort(times, result.t)
                if times[-1] == result.t:
                    stalls += _stalls_in(times[-2:])
                else:
                    stalls[:] = _stalls_in(times)

    def ends(self, lane: str) -> list[int]:
        """The end of each stall."""
        return [later for _, later in self._stalls.get(lane, [])]

    def stall_lengths_ms(self, lane: str) -> list[int]:
        return [later - t for t, later in self._stalls.get(lane, [])]

    def stalls(self, lane: str, until_ms: int) -> int:
        """The number of stalls by then, including a current one."""
        times = self.times.get(lane, [])
        before = bisect_left(times, until_ms)
        goes_on = bool(before) and until_ms - times[before - 1] > STALL_MS
        return bisect_left(self.ends(lane), until_ms) + goes_on


def _stalls_in(times: list[int]) -> list[tuple[int, int]]:
    return [(t, later) for t, later in pairwise(times) if later - t > STALL_MS]
