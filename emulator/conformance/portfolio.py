"""Several guided searches side by side and one after the other, until one finds or time is up.

How long a search takes varies tenfold with its seed, so each gets a number of draws and then gives
way to the next: mostly few, now and then more (Luby's sequence, which is never much worse than
the best fixed number). Owns the budget, the processes (none is left), and the count of draws. This
module must not know how a search goes about it.
"""

from __future__ import annotations

import os
import selectors
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from emulator.conformance.draws import NOWHERE
from emulator.conformance.forks import Child
from emulator.conformance.search import Found, Goal, Missed, Search
from emulator.conformance.walk import Leg
from emulator.runtime.collector import rare_collections

DRAWS_PER_SEARCH = 120
"""Of a short search; longer ones get 2, 4, 8 ... times as many."""
_TOLD_EVERY_S = 0.2
_DRAW = struct.Struct("<IHB")
"""Which search, which leg, and whether the draw got through; written at once, so never torn."""


@dataclass
class Progress:
    """Where a portfolio is. Draws are counted by leg, over all its searches and of each."""

    legs: list[Leg]
    seconds: float = 0.0
    searches: int = 0
    draws: Counter[int] = field(default_factory=Counter)
    of_search: dict[int, Counter[int]] = field(default_factory=dict)
    furthest: int = 0
    """How many legs a run got through."""

    @property
    def total(self) -> int:
        return self.draws.total()

    @property
    def draws_per_second(self) -> float:
        return self.total / max(self.seconds, 0.001)

    @property
    def stretch(self) -> int:
        """The last one that a run got through."""
        return self.legs[self.furthest - 1].stretches[-1] if self.furthest else 0

    @property
    def stretches(self) -> int:
        return self.legs[-1].stretches[-1]

    def drawn(self, search: int, leg: int, through: int) -> None:
        self.draws[leg] += 1
        self.of_search.setdefault(search, Counter())[leg] += 1
        self.furthest = max(self.furthest, leg + through)


OnProgress: TypeAlias = Callable[[Progress], object]


@dataclass(frozen=True)
class Result:
    """What came of it: a match, or how far the furthest search came (None: nowhere)."""

    found: Found | None
    nearest: Missed | None
    progress: Progress
    search: int
    """The number of the search that found the match."""


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


class Portfolio:
    """The searches of one goal."""

    def __init__(self, goal: Goal, budget: Budget, on_progress: OnProgress) -> None:
        self._goal, self._budget, self._on_progress = goal, budget, on_progress
        self._running: dict[int, tuple[int, Child]] = {}
        self._nearest: Missed | None = None
        self._told_s = 0.0
        self._began_s = time.monotonic()
        self.progress = Progress(goal.legs)

    def run(self) -> Result:
        self._draws, self._writes = os.pipe()
        os.set_blocking(self._draws, False)
        try:
            return self._run()
        finally:
            for _, child in self._running.values():
                child.end()
            os.close(self._draws)
            os.close(self._writes)

    def _run(self) -> Result:
        until_s = self._began_s + self._budget.seconds
        while (left_s := until_s - time.monotonic()) > 0 and self._start():
            for reads in self._wait(left_s):
                number, child = self._running.pop(reads)
                outcome = child.result()
                child.end()
                if isinstance(outcome, Found):
                    self._count()
                    return Result(outcome, None, self.progress, number)
                self._missed(outcome)
        self._count()
        return Result(None, self._nearest, self.progress, 0)

    def _start(self) -> int:
        """Start searches where there is room; how many run."""
        budget, progress = self._budget, self.progress
        while len(self._running) < budget.jobs and progress.searches != (budget.searches or -1):
            progress.searches += 1
            number = progress.searches
            child = Child(lambda number=number: self._search(number))  # type: ignore[misc]
            self._running[child.reads] = number, child
        return len(self._running)

    def _search(self, number: int) -> Found | Missed:
        """In the child. The number of the search is its seed."""

        def on_draw(leg: int, through: bool) -> None:  # noqa: FBT001
            os.write(self._writes, _DRAW.pack(number, leg, through))

        limit = self._budget.draws_per_search * luby(number)
        with rare_collections():
            return Search(self._goal, number, limit, on_draw).run()

    def _missed(self, outcome: Missed) -> None:
        score = self._nearest.score if self._nearest else NOWHERE
        if outcome.score > score:
            self._nearest = outcome

    def _wait(self, left_s: float) -> list[int]:
        """Searches that are over; sees to the count of draws meanwhile."""
        with selectors.DefaultSelector() as selector:
            for reads in (self._draws, *self._running):
                selector.register(reads, selectors.EVENT_READ)
            ready = [key.fd for key, _ in selector.select(min(left_s, _TOLD_EVERY_S))]
        self._count()
        return [reads for reads in ready if reads != self._draws]

    def _count(self) -> None:
        """Take note of what was drawn."""
        try:
            while data := os.read(self._draws, _DRAW.size * 1024):
                for search, leg, through in _DRAW.iter_unpack(data):
                    self.progress.drawn(search, leg, through)
        except BlockingIOError:
            pass
        now_s = time.monotonic()
        self.progress.seconds = now_s - self._began_s
        if now_s - self._told_s > _TOLD_EVERY_S:
            self._told_s = now_s
            self._on_progress(self.progress)
