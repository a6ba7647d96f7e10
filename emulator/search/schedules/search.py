"""Plays one schedule after another from one warm start, each in a copy of it.

Owns which schedules are tried: a number of random ones, or all of a small scope, breadth first by
the number of differences from the default order. A state that was visited before (with an equal or
shorter schedule, and as many faults and steps left) is not expanded again. Prints nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from emulator.kernel.rng import Stream, mix
from emulator.runs.broken import Broken
from emulator.runs.forks import in_child
from emulator.search.schedules.schedule import Candidate, Choice, Injection, Schedule
from emulator.search.schedules.strategies import DefaultOrder, PriorityOrder, RandomOrder
from emulator.search.schedules.warm_cluster import FOREVER_US, ScheduleResult, WarmCluster
from emulator.search.schedules.warm_pool import WarmPool

Strategy = Literal["random", "pct", "exhaustive"]
BATCH = 32


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The scope of a search. `menu`: the possible faults, at most `faults_max` of them in one
    schedule. `then_us`: how long a schedule continues after its last step."""

    strategy: Strategy = "random"
    schedules: int = 200
    seconds: float | None = None
    menu: tuple[Injection, ...] = ()
    faults_max: int = 1
    then_us: int = FOREVER_US
    jobs: int = 1
    keep_going: bool = False


@dataclass
class ExploreTally:
    """The counts so far. `complete`: nothing of the scope is left; None for a random search."""

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
    warm: WarmCluster, options: SearchOptions, progress: ExploreTally
) -> Iterator[ScheduleResult]:
    """The result of each schedule; `progress` already includes it."""
    is_exhaustive = options.strategy == "exhaustive"
    results = everything(warm, options, progress) if is_exhaustive else _drawn(warm, options)
    for played in results:
        progress.take(played)
        yield played
        if played.broken and not options.keep_going:
            return
        if options.seconds is not None and progress.seconds > options.seconds:
            return


def _drawn(warm: WarmCluster, options: SearchOptions) -> Iterator[ScheduleResult]:
    """Random schedules. Without faults, the first one is the default order."""
    schedule = warm.schedule
    kind = PriorityOrder if options.strategy == "pct" else RandomOrder

    def play(warm: WarmCluster, number: int) -> ScheduleResult:
        stream = Stream(mix(schedule.seed ^ mix(number)))
        if number == 0 and not options.menu:
            return warm.play(DefaultOrder(schedule.steps), then_us=options.then_us)
        order = kind(schedule.steps, stream, options.menu, options.faults_max)
        return warm.play(order, then_us=options.then_us)

    for _, played in WarmPool(warm).play(range(options.schedules), play, options.jobs):
        yield played


# -- exhaustive search -----------------------------------------------------------------------------


Node = tuple[Candidate, int]
"""A candidate, and the first step at which it may be extended: after its last choice."""

IsWorthTrying = Callable[[tuple[str, ...]], bool]
"""Whether to try passing over items with these labels."""

NOTHING_CHOSEN = Candidate()


def everything(
    warm: WarmCluster,
    options: SearchOptions,
    progress: ExploreTally,
    first: Candidate = NOTHING_CHOSEN,
    worth: IsWorthTrying | None = None,
) -> Iterator[ScheduleResult]:
    """Search breadth first by length from `first` on: all schedules with n differences before any
    with n + 1."""
    pool = WarmPool(warm)
    visited: dict[tuple[str, int], int] = {}
    level: list[Node] = [(first, 0)]
    left = options.schedules
    progress.complete = False

    def play(warm: WarmCluster, node: Node) -> ScheduleResult:
        return warm.play_written(node[0], then_us=options.then_us, states=True)

    while level:
        following: list[Node] = []
        for start in range(0, len(level), BATCH):
            batch = level[start : start + BATCH][:left]
            left -= min(BATCH, len(level) - start)
            results = dict(pool.play(batch, play, options.jobs))
            # In the order of the candidates, not of completion: each one changes `visited`.
            for place, node in enumerate(batch):
                following += _one_longer(node, results[place], options, visited, worth)
                yield results[place]
            if left <= 0 and (following or len(batch) < BATCH):
                return
        level = following
    progress.complete = True


def _one_longer(
    node: Node,
    played: ScheduleResult,
    options: SearchOptions,
    visited: dict[tuple[str, int], int],
    worth: IsWorthTrying | None,
) -> Iterator[Node]:
    """Every extension by one difference after the last one. `visited`: for each state and number of
    faults, the earliest step at which the search was there."""
    candidate, since = node
    choices, faults = candidate.choices, candidate.faults
    for step in range(since, len(played.offered)):
        key = played.states[step], len(faults)
        if visited.get(key, step + 1) <= step:
            return  # the earlier visit had as many steps left and tried everything that follows
        visited[key] = step
        for take in range(1, played.offered[step]):
            if worth is None or worth(played.options[step][:take]):
                yield Candidate((*choices, Choice(step, take)), faults), step + 1
        if len(faults) < options.faults_max:
            for fault in options.menu:
                injection = Injection(step, fault.do, fault.lasts)
                yield Candidate(choices, (*faults, injection)), step


# -- results ---------------------------------------------------------------------------------------


def as_schedule(warm: WarmCluster, played: ScheduleResult) -> Schedule:
    """The schedule of one play with its outcome."""
    bare = msgspec.structs.replace(warm.schedule, violation=None)
    return with_outcome(bare, in_child(lambda: warm.play_written(played, digest=True)))


def broken_of(schedule: Schedule, played: ScheduleResult) -> Broken | None:
    """The violation that a schedule is about: the one in the file, or the first."""
    invariant = schedule.violation and schedule.violation.invariant
    same = (one for one in played.broken if one.invariant == invariant)
    return next(same, played.broken[0] if played.broken else None)


def with_outcome(schedule: Schedule, played: ScheduleResult) -> Schedule:
    """The schedule with its outcome; its steps end when nothing is chosen or late any more."""
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
