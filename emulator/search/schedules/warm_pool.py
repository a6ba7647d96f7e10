"""Equal warm clusters side by side: a forked child plays one schedule on each of them.

What a fork costs is the pages that its child touches, and many of those are the program's own, not
the world's: a child with eight worlds touches them once. All warm clusters of a schedule are the
same, since a warm start is. Owns when another one pays: never has more been spent on warm starts
than on the forks so far. It must not know what is played, or why.
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
"""What a fork costs beside twenty steps: processor time, as measured (docs/performance.md)."""


class WarmPool:
    """One warm cluster at first, more of them while many schedules are played."""

    def __init__(self, first: WarmCluster) -> None:
        self.all = [first]
        self._played = 0

    def play(
        self, items: Iterable[A], work: Callable[[WarmCluster, A], ScheduleResult], jobs: int
    ) -> Iterator[tuple[int, ScheduleResult]]:
        """`work` of every item on a warm cluster that was not played on: (index, result) as they
        come."""
        waiting = iter(enumerate(items))
        # How many a child takes is looked up when it is forked: the pool grows meanwhile.
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
