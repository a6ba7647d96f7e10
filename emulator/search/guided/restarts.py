"""Samples and searches, parallel and in sequence, until their runs form a match or time is up.

Each finds runs that agree in state history, controllers and control requests. A match is a set of
such runs that covers each other part and each delay. A *sample* is one run that ends at its first
contradiction. Some samples come first: often they are a match already, or lack little. Searches
follow. They start from an agreeing run and target what is missing, while other processes go on with
samples, each of which may have all that is missing. Without an agreeing run, every second search
starts from the nearest run.

The duration of a search varies tenfold with its number, so each has a limited number of draws:
usually few, occasionally more (Luby's sequence, which is never much worse than the best fixed
limit). Owns the budget, the processes (none is left), and the count of draws. This module must not
know how a search works.
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

from emulator.conformance.criteria import Part
from emulator.runs.forks import Pool
from emulator.search.guided.candidates import NOWHERE
from emulator.search.guided.guided_run import SegmentGroup
from emulator.search.guided.search import (
    AgreeingRun,
    Goal,
    OnCandidate,
    Search,
    SearchResult,
    sample,
    still_missing,
)
from emulator.worlds.gc_tuning import rare_collections

DRAWS_PER_SEARCH = 400
"""The limit of a short search; longer ones get 2, 4, 8 ... times as many."""
FIRST_SAMPLES = 10
"""So many samples come first."""
_PROGRESS_EVERY_S = 0.2
_DRAW = struct.Struct("<HB")
"""The group, and whether the candidate got through; written atomically."""


@dataclass
class Progress:
    """The progress of all searches. Draws are counted by group."""

    groups: list[SegmentGroup]
    seconds: float = 0.0
    samples: int = 0
    searches: int = 0
    draws: Counter[int] = field(default_factory=Counter)
    furthest: int = 0
    """The number of groups that the best run got through."""
    agreeing: int = 0
    """The number of agreeing runs."""
    missing: int = 0
    """The number of parts that are equal in none of them."""

    @property
    def total(self) -> int:
        return self.draws.total()

    @property
    def draws_per_second(self) -> float:
        return self.total / max(self.seconds, 0.001)

    @property
    def segment(self) -> int:
        """The last segment that a run got through."""
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
    """The limits. `searches` 0: only the time limit."""

    seconds: float
    jobs: int
    searches: int = 0
    draws_per_search: int = DRAWS_PER_SEARCH
    first_samples: int = FIRST_SAMPLES


def luby(n: int) -> int:
    """The nth of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8 ..."""
    k = n.bit_length()
    return 1 << (k - 1) if n == (1 << k) - 1 else luby(n - (1 << (k - 1)) + 1)


def needed(agreeing: Sequence[AgreeingRun]) -> list[AgreeingRun]:
    """Remove redundant runs, starting with those that lack most."""
    runs = list(agreeing)
    missing = still_missing(None, runs) if runs else []
    for run in sorted(agreeing, key=lambda one: len(one.lacking), reverse=True):
        others = [one for one in runs if one is not run]
        if others and still_missing(None, others) == missing:
            runs = others
    return runs


class Restarts:
    """All searches of one goal."""

    def __init__(self, goal: Goal, budget: Budget, on_progress: OnProgress) -> None:
        self._goal, self._budget, self._on_progress = goal, budget, on_progress
        self._pool = Pool[SearchResult](budget.jobs)
        self._agreeing: list[AgreeingRun] = []
        self._missing: list[Part] = []
        self._nearest: SearchResult | None = None
        self._searches_running: set[int] = set()
        self._progress_s = 0.0
        self._began_s = time.monotonic()
        self.progress = Progress(goal.groups)

    def run(self) -> Result:
        # Searches are child processes, which report each candidate through this pipe.
        self._draws, self._writes = os.pipe()
        os.set_blocking(self._draws, False)
        try:
            matched = self._search_until_matched()
            self._count()
        finally:
            self._pool.close()
            os.close(self._draws)
            os.close(self._writes)
        agreeing = tuple(needed(self._agreeing))
        return Result(matched, agreeing, self._nearest, self.progress)

    def _search_until_matched(self) -> bool:
        """False: the time or the number of searches is used up."""
        until_s = self._began_s + self._budget.seconds
        while (left_s := until_s - time.monotonic()) > 0:
            while self._pool.has_room and (work := self._next_work()) is not None:
                self._pool.start(self._pieces, partial(self._work, work))
            if not self._pool:
                return False
            timeout_s = min(left_s, _PROGRESS_EVERY_S)
            for piece, ended in self._pool.results(timeout_s, [self._draws]):
                self._searches_running.discard(piece)
                if self._completes_match(ended):
                    return True
            self._count()
        return False

    def _next_work(self) -> Callable[[OnCandidate], SearchResult] | None:
        """A sample or a search; None: the number of searches is used up."""
        budget, progress, goal = self._budget, self.progress, self._goal
        if progress.samples < budget.first_samples or self._samples_pay:
            progress.samples += 1
            return partial(sample, goal, progress.samples)
        if budget.searches and progress.searches == budget.searches:
            return None
        progress.searches += 1
        self._searches_running.add(self._pieces)
        number = progress.searches
        start: AgreeingRun | SearchResult | None = None
        if self._agreeing:
            start = self._agreeing[number % len(self._agreeing)]
        elif number % 2:
            start = self._nearest
        limit = budget.draws_per_search * luby(number)
        missing = self._missing if self._agreeing else None
        return lambda on_draw: Search(goal, number, limit, on_draw, missing, start).run()

    @property
    def _pieces(self) -> int:
        """The number of samples and searches started."""
        return self.progress.samples + self.progress.searches

    @property
    def _samples_pay(self) -> bool:
        """A sample takes a second, a search up to minutes: if there are agreeing runs, searches
        get half of the processes."""
        if not self._agreeing:
            return False
        if self._budget.jobs == 1:
            return self.progress.samples < self._budget.first_samples + self.progress.searches
        return len(self._searches_running) >= self._budget.jobs // 2

    def _completes_match(self, ended: SearchResult) -> bool:
        """Whether all agreeing runs so far, including these, form a match."""
        if not ended.agreeing:
            if ended.score > (self._nearest.score if self._nearest else NOWHERE):
                self._nearest = ended
            return False
        self._agreeing += ended.agreeing
        self._missing = still_missing(None, self._agreeing)
        self.progress.agreeing, self.progress.missing = len(self._agreeing), len(self._missing)
        return not self._missing

    def _work(self, work: Callable[[OnCandidate], SearchResult]) -> SearchResult:
        """Run in the child."""
        # Only the parent reads: when it is gone, the next candidate's report fails and ends this
        # process.
        os.close(self._draws)

        def on_draw(group: int, through: bool) -> None:  # noqa: FBT001
            os.write(self._writes, _DRAW.pack(group, through))

        with rare_collections():
            return work(on_draw)

    def _count(self) -> None:
        """Read the candidates tried since, and report five times a second."""
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
