"""Schedule after schedule from one warm start, each in a copy of it.

Owns which schedules are tried: so many drawn ones, or all of a small scope, breadth first by how
much differs from what happens by itself. There a state that was met before (by an equal or shorter
schedule, with as many faults left and as many steps) is not gone on from. Prints nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import msgspec

from emulator.kernel.rng import Stream, mix
from emulator.runs.broken import Broken
from emulator.runs.forks import in_child
from emulator.search.schedules.schedule import Choice, Injection, Schedule
from emulator.search.schedules.strategies import (
    DefaultOrder,
    PriorityOrder,
    RandomOrder,
    WrittenOrder,
)
from emulator.search.schedules.warm_cluster import FOREVER_US, ScheduleResult, WarmCluster
from emulator.search.schedules.warm_pool import WarmPool

How = Literal["random", "pct", "exhaustive"]
BATCH = 32


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be searched. `menu`: the faults that there may be, `faults_max` of them in one
    schedule. `then_us`: how long a schedule goes on behind its last step."""

    how: How = "random"
    schedules: int = 200
    seconds: float | None = None
    menu: tuple[Injection, ...] = ()
    faults_max: int = 1
    then_us: int = FOREVER_US
    jobs: int = 1
    keep_going: bool = False


@dataclass
class ExploreTally:
    """What was seen so far. `complete`: nothing of the scope is left; None where chance decides."""

    began_s: float = field(default_factory=time.monotonic)
    schedules: int = 0
    steps: int = 0
    longest: int = 0
    states: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    failing: list[ScheduleResult] = field(default_factory=list)
    complete: bool | None = None

    def take(self, played: ScheduleResult) -> None:
        self.schedules += 1
        self.steps += len(played.offered)
        self.longest = max(self.longest, played.length)
        self.seen.update(played.seen)
        self.states.update(played.states)
        if played.broken:
            self.failing.append(played)

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.began_s, 1e-6)


def search(
    warm: WarmCluster, options: SearchOptions, tally: ExploreTally
) -> Iterator[ScheduleResult]:
    """Each schedule that was tried, as it comes; the tally has it already."""
    found = (
        everything(warm, options, tally) if options.how == "exhaustive" else _drawn(warm, options)
    )
    for played in found:
        tally.take(played)
        yield played
        if played.broken and not options.keep_going:
            return
        if options.seconds is not None and tally.seconds > options.seconds:
            return


# -- drawn -----------------------------------------------------------------------------------------


def _drawn(warm: WarmCluster, options: SearchOptions) -> Iterator[ScheduleResult]:
    """The first is what happens by itself."""
    draw = _draws(warm.schedule, options)

    def work(warm: WarmCluster, number: int) -> ScheduleResult:
        return warm.play(draw(number), then_us=options.then_us)

    for _, played in WarmPool(warm).play(range(options.schedules), work, options.jobs):
        yield played


def _draws(schedule: Schedule, options: SearchOptions) -> Callable[[int], DefaultOrder]:
    kind = PriorityOrder if options.how == "pct" else RandomOrder

    def draw(number: int) -> DefaultOrder:
        stream = Stream(mix(schedule.seed ^ mix(number)))
        if number == 0 and not options.menu:
            return DefaultOrder(schedule.steps)
        return kind(schedule.steps, stream, options.menu, options.faults_max)

    return draw


# -- everything ------------------------------------------------------------------------------------


class Candidate(msgspec.Struct, frozen=True):
    """What differs so far, and from which step on more may."""

    choices: tuple[Choice, ...] = ()
    faults: tuple[Injection, ...] = ()
    since: int = 0


Worth = Callable[[tuple[str, ...]], bool]
"""Whether to pass these over, in words."""


FROM_NOTHING = Candidate()


def everything(
    warm: WarmCluster,
    options: SearchOptions,
    tally: ExploreTally,
    first: Candidate = FROM_NOTHING,
    worth: Worth | None = None,
) -> Iterator[ScheduleResult]:
    """Breadth first by length, from `first` on: all that differ in n places before any that differs
    in n + 1."""
    schedule, pool = warm.schedule, WarmPool(warm)
    met: dict[tuple[str, int], int] = {}
    level, left = [first], options.schedules
    tally.complete = False

    def play(warm: WarmCluster, candidate: Candidate) -> ScheduleResult:
        steps = WrittenOrder(schedule.steps, candidate.choices, candidate.faults, exactly=True)
        return warm.play(steps, then_us=options.then_us, states=True)

    while level:
        following: list[Candidate] = []
        for batch in _batches(level):
            batch, left = batch[:left], left - len(batch)
            results = dict(pool.play(batch, play, options.jobs))
            for place, candidate in enumerate(batch):
                played = results[place]
                following += _more(candidate, played, options, met, worth)
                yield played
            if left <= 0 and (following or len(batch) < BATCH):
                return
        level = following
    tally.complete = True


def _more(
    candidate: Candidate,
    played: ScheduleResult,
    options: SearchOptions,
    met: dict[tuple[str, int], int],
    worth: Worth | None,
) -> Iterator[Candidate]:
    """Every way to differ in one more place, behind the last one."""
    used = len(candidate.faults)
    for step in range(candidate.since, len(played.offered)):
        key = played.states[step], used
        if met.get(key, step + 1) <= step:
            return
        met[key] = step
        for take in range(1, played.offered[step]):
            if worth is None or worth(played.options[step][:take]):
                yield Candidate(
                    (*candidate.choices, Choice(step, take)), candidate.faults, step + 1
                )
        if used < options.faults_max:
            for one in options.menu:
                injection = Injection(step, one.do, one.lasts)
                yield Candidate(candidate.choices, (*candidate.faults, injection), step)


def _batches(items: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    waiting = iter(items)
    while batch := list(islice(waiting, BATCH)):
        yield batch


# -- what is kept ----------------------------------------------------------------------------------


def as_schedule(warm: WarmCluster, played: ScheduleResult) -> Schedule:
    """The schedule of one play, with what comes of it when it is played to its end."""
    bare = msgspec.structs.replace(
        warm.schedule, choices=played.choices, faults=played.faults, violation=None
    )

    def again() -> ScheduleResult:
        steps = WrittenOrder(bare.steps, bare.choices, bare.faults, exactly=True)
        return warm.play(steps, digest=True)

    return with_outcome(bare, in_child(again))


def broken_of(schedule: Schedule, played: ScheduleResult) -> Broken | None:
    """What a schedule is about among all that broke: what it says, else the first."""
    wanted = schedule.violation and schedule.violation.invariant
    same = (one for one in played.broken if one.invariant == wanted)
    return next(same, played.broken[0] if played.broken else None)


def with_outcome(schedule: Schedule, played: ScheduleResult) -> Schedule:
    """It says what it leads to; where nothing is chosen or late any more its steps end."""
    broken = broken_of(schedule, played)
    return msgspec.structs.replace(
        schedule,
        choices=played.choices,
        faults=played.faults,
        steps=min(schedule.steps, played.needed),
        violation=broken and Broken(broken.invariant, broken.text, broken.hazard),
        events=played.events,
        trace=played.trace,
    )
