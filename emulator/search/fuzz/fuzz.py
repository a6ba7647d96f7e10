"""Tries seeds in order, in several processes, up to a number of seeds or a time limit.

Results come in the order of the seeds. Owns the counts; prints nothing.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, takewhile

from emulator.kafka.profiles.base import profiles
from emulator.runs.forks import in_order
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.trial import Keep, Trial, try_seed
from emulator.search.fuzz.worlds import AS_USUAL


@dataclass
class FuzzTally:
    """The counts so far."""

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
    versions: Sequence[VersionOptions] = (AS_USUAL,),
    keep: Keep | None = None,
    *,
    storage: bool = False,
) -> Iterator[Trial]:
    """Try the seeds from `first` on: at most `runs`, for at most `seconds`. The seed determines
    which of the versions each one gets. `keep` is called with each play, in the process that played
    it."""

    def tried(seed: int) -> Trial:
        return try_seed(seed, versions[seed % len(versions)], keep, storage=storage)

    ends_s = math.inf if seconds is None else time.monotonic() + seconds
    seeds = takewhile(lambda _: time.monotonic() <= ends_s, islice(count(first), runs))
    if jobs == 1:
        yield from map(tried, seeds)
    else:
        yield from in_order(seeds, tried, jobs)


def every_version() -> tuple[VersionOptions, ...]:
    """Each profile with each propagation that it supports."""
    return tuple(
        VersionOptions(name, propagation=propagation)
        for name, profile in profiles().items()
        for propagation in profile.propagations
    )
