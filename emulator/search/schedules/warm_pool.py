"""Several equal warm clusters: a forked child plays one schedule on each of them.

The cost of a fork is the pages that its child touches, and many of those belong to the program, not
the world: a child with eight worlds touches them once. All warm clusters of a schedule are equal,
because a warm start is deterministic. Owns when another one pays off: the time spent on warm starts
never exceeds the time spent on forks. Must not know what is played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from emulator.runs.forks import in_children
from emulator.search.schedules.warm_cluster import ScheduleResult, WarmCluster

A = TypeVar("A")
MOST = 16
FORK_S = 0.006
"""The CPU time of a fork, in addition to twenty steps, as measured (docs/performance.md)."""


class WarmPool:
    """Starts with one warm cluster, and adds more while many schedules are played."""

    def __init__(self, first: WarmCluster) -> None:
        self.all = [first]
        self._played = 0

    def play(
        self, items: Iterable[A], work: Callable[[WarmCluster, A], ScheduleResult], jobs: int
    ) -> Iterator[tuple[int, ScheduleResult]]:
        """Do `work` for every item on an unused warm cluster. Yields (index, result) as they
        finish."""
        waiting = iter(enumerate(items))
        # The size of a batch is evaluated at its fork, because the pool grows meanwhile.
        batches = iter(lambda: list(islice(waiting, len(self.all))), [])

        def play_batch(batch: list[tuple[int, A]]) -> list[tuple[int, ScheduleResult]]:
            pairs = zip(self.all[: len(batch)], batch, strict=True)
            return [(index, work(warm, item)) for warm, (index, item) in pairs]

        for _, results in in_children(batches, play_batch, jobs):
            yield from results
            self._played += len(results)
            number, warm_s = len(self.all), self.all[0].warm_s
            if number < MOST and self._played * FORK_S > warm_s * number**2:
                self.all.append(WarmCluster(self.all[0].schedule))
