"""Seed after seed, in several processes: until so many were tried, or the time is over.

Owns the order (results come in the order of the seeds, whoever was quicker) and what is counted.
Prints nothing.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing import get_context

from emulator.scenario.version import Chosen
from emulator.search.fuzz.trial import Keep, Trial, try_seed
from emulator.search.fuzz.worlds import AS_USUAL

AHEAD = 4
"""How many trials per process are given out before the first of them is asked for."""


@dataclass
class Tally:
    """What was seen so far."""

    began_s: float = field(default_factory=time.monotonic)
    trials: int = 0
    events: int = 0
    virtual_us: int = 0
    failed: list[Trial] = field(default_factory=list)
    hazards: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)

    def take(self, trial: Trial) -> None:
        self.trials += 1
        self.events += trial.events
        self.virtual_us += trial.virtual_us
        for name in sorted({f.hazard for f in trial.failures if f.hazard}):
            self.hazards[name] += 1
            self.examples.setdefault(name, trial.seed)
        if trial.ours:
            self.failed.append(trial)

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.began_s, 1e-6)


def trials(
    first: int,
    runs: int | None,
    seconds: float | None,
    jobs: int,
    chosen: Chosen = AS_USUAL,
    keep: Keep | None = None,
) -> Iterator[Trial]:
    """Try seed after seed from `first`: at most `runs`, for at most `seconds`. `keep` is given each
    as it was played, in the process that played it."""
    seeds = islice(count(first), runs)
    ends_s = None if seconds is None else time.monotonic() + seconds
    if jobs == 1:
        for seed in seeds:
            if ends_s is not None and time.monotonic() > ends_s:
                return
            yield try_seed(seed, chosen, keep)
        return
    yield from _in_parallel(seeds, ends_s, jobs, chosen, keep)


def _in_parallel(
    seeds: Iterator[int], ends_s: float | None, jobs: int, chosen: Chosen, keep: Keep | None
) -> Iterator[Trial]:
    with ProcessPoolExecutor(jobs, get_context("fork"), _ignore_interrupts) as pool:
        waiting: list[Future[Trial]] = []
        try:
            while True:
                if ends_s is None or time.monotonic() < ends_s:
                    wanted = jobs * AHEAD - len(waiting)
                    more = islice(seeds, wanted)
                    waiting += [pool.submit(try_seed, seed, chosen, keep) for seed in more]
                if not waiting:
                    return
                yield waiting.pop(0).result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C is the parent's business; its children end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
