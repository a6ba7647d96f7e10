"""Several guided searches, parallel and in sequence, until their runs form a match or time is up.

Each finds a run that agrees in state history, controllers and control requests; a match is a set of
such runs in which each other part is equal in one. A search receives the missing parts at its
start, and searches for them from an agreeing run of its own.

How long a search takes varies tenfold with its seed, so each gets a number of draws and then gives
way to the next: mostly few, now and then more (Luby's sequence, which is never much worse than
the best fixed number). Owns the budget, the processes (none is left), and the count of draws. This
module must not know how a search goes about it.
"""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from emulator.conformance.compare import Reference, Verdict, conclude
from emulator.conformance.criteria import DELAYS, Part
from emulator.runs.forks import Pool
from emulator.search.guided.candidates import NOWHERE
from emulator.search.guided.guided_run import SegmentGroup
from emulator.search.guided.search import AgreeingRun, Goal, Search, SearchResult
from emulator.worlds.gc_tuning import rare_collections

DRAWS_PER_SEARCH = 120
"""Of a short search; longer ones get 2, 4, 8 ... times as many."""
_PROGRESS_EVERY_S = 0.2
_DRAW = struct.Struct("<HB")
"""Which group, and whether the candidate got through; written at once, so never torn."""


@dataclass
class Progress:
    """Where the searches are. Draws are counted by group, over all its searches."""

    groups: list[SegmentGroup]
    seconds: float = 0.0
    searches: int = 0
    draws: Counter[int] = field(default_factory=Counter)
    furthest: int = 0
    """How many groups a run got through."""
    agreeing: int = 0
    """How many runs were found."""
    missing: int = 0
    """How many parts are equal in none of them."""

    @property
    def total(self) -> int:
        return self.draws.total()

    @property
    def draws_per_second(self) -> float:
        return self.total / max(self.seconds, 0.001)

    @property
    def segment(self) -> int:
        """The last one that a run got through."""
        return self.groups[self.furthest - 1].segments[-1] if self.furthest else 0

    @property
    def segments(self) -> int:
        return self.groups[-1].segments[-1]

    def drawn(self, group: int, through: int) -> None:
        self.draws[group] += 1
        self.furthest = max(self.furthest, group + through)


OnProgress: TypeAlias = Callable[[Progress], object]


@dataclass(frozen=True)
class Result:
    """The result: runs that form a match or part of one, and how far the furthest unsuccessful
    search came (None: nowhere).
    """

    matched: bool
    agreeing: tuple[AgreeingRun, ...]
    nearest: SearchResult | None
    progress: Progress


@dataclass(frozen=True)
class Budget:
    """When to stop. `searches` 0: only when time is up."""

    seconds: float
    jobs: int
    searches: int = 0
    draws_per_search: int = DRAWS_PER_SEARCH


def luby(n: int) -> int:
    """The nth of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8 ..."""
    k = n.bit_length()
    return 1 << (k - 1) if n == (1 << k) - 1 else luby(n - (1 << (k - 1)) + 1)


def missing_in(verdict: Verdict) -> list[Part]:
    """Of runs that agree, the parts in which none is equal, and the delays that none spans."""
    parts = [(difference.point, difference.key) for difference in verdict.differences]
    return [*parts, *((DELAYS, timing.what) for timing in verdict.timings if not timing.inside)]


def needed(reference: Reference, agreeing: Sequence[AgreeingRun]) -> list[AgreeingRun]:
    """Leave out redundant runs, those that differ most first."""
    runs = list(agreeing)
    lacking = len(missing_in(_verdict(reference, runs))) if runs else 0
    for run in sorted(agreeing, key=lambda one: len(one.examined.lacking), reverse=True):
        others = [one for one in runs if one is not run]
        if others and len(missing_in(_verdict(reference, others))) == lacking:
            runs = others
    return runs


def _verdict(reference: Reference, agreeing: Sequence[AgreeingRun]) -> Verdict:
    return conclude(reference, [run.examined for run in agreeing])


class Restarts:
    """The searches of one goal."""

    def __init__(
        self,
        goal: Goal,
        budget: Budget,
        on_progress: OnProgress,
        spans_delays: Callable[[Sequence[AgreeingRun]], bool] = lambda _: False,
    ) -> None:
        """`spans_delays`: asked of runs that lack nothing but delays, which reruns may have."""
        self._goal, self._budget, self._on_progress = goal, budget, on_progress
        self._spans_delays = spans_delays
        self._pool = Pool[SearchResult](budget.jobs)
        self._agreeing: list[AgreeingRun] = []
        self._missing: list[Part] = []
        self._nearest: SearchResult | None = None
        self._progress_s = 0.0
        self._began_s = time.monotonic()
        self.progress = Progress(goal.groups)

    def run(self) -> Result:
        # Searches are children; each candidate that they try they tell through this pipe.
        self._draws, self._writes = os.pipe()
        os.set_blocking(self._draws, False)
        try:
            matched = self._search_until_matched()
            self._count()
        finally:
            self._pool.close()
            os.close(self._draws)
            os.close(self._writes)
        agreeing = tuple(needed(self._goal.reference, self._agreeing))
        return Result(matched, agreeing, self._nearest, self.progress)

    def _search_until_matched(self) -> bool:
        """False: the time or the number of searches is spent."""
        budget, progress = self._budget, self.progress
        until_s = self._began_s + budget.seconds
        while (left_s := until_s - time.monotonic()) > 0:
            while self._pool.has_room and progress.searches != (budget.searches or -1):
                progress.searches += 1
                self._pool.start(progress.searches, partial(self._search, progress.searches))
            if not self._pool:
                return False
            timeout_s = min(left_s, _PROGRESS_EVERY_S)
            for _, ended in self._pool.results(timeout_s, [self._draws]):
                if self._completes_match(ended):
                    return True
            self._count()
        return False

    def _completes_match(self, ended: SearchResult) -> bool:
        """Whether the agreeing runs so far, these included, form a match."""
        if not ended.agreeing:
            if ended.score > (self._nearest.score if self._nearest else NOWHERE):
                self._nearest = ended
            return False
        self._agreeing += ended.agreeing
        verdict = _verdict(self._goal.reference, self._agreeing)
        self._missing = missing_in(verdict)
        self.progress.agreeing, self.progress.missing = len(self._agreeing), len(self._missing)
        if {point for point, _ in self._missing} == {DELAYS}:
            return self._spans_delays(needed(self._goal.reference, self._agreeing))
        return verdict.matched

    def _search(self, number: int) -> SearchResult:
        """In the child. The number of the search is its seed."""

        def on_draw(group: int, through: bool) -> None:  # noqa: FBT001
            os.write(self._writes, _DRAW.pack(group, through))

        limit = self._budget.draws_per_search * luby(number)
        missing = self._missing if self._agreeing else None
        with rare_collections():
            return Search(self._goal, number, limit, on_draw, missing).run()

    def _count(self) -> None:
        """Read which candidates were tried since, and report five times a second."""
        try:
            while data := os.read(self._draws, _DRAW.size * 1024):
                for group, through in _DRAW.iter_unpack(data):
                    self.progress.drawn(group, through)
        except BlockingIOError:
            pass
        now_s = time.monotonic()
        self.progress.seconds = now_s - self._began_s
        if now_s - self._progress_s > _PROGRESS_EVERY_S:
            self._progress_s = now_s
            self._on_progress(self.progress)
