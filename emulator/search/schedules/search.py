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
from emulator.search.schedules.schedule import Choice, Schedule, Strike
from emulator.search.schedules.strategies import AsItComes, AsWritten, AtRandom, ByPriority
from emulator.search.schedules.warm_cluster import FOREVER_US, Played, Stage
from emulator.search.schedules.warm_pool import Stages

How = Literal["random", "pct", "exhaustive"]
BATCH = 32


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be searched. `menu`: the faults that there may be, `faults_max` of them in one
    schedule. `then_us`: how long a schedule goes on behind its last step."""

    how: How = "random"
    schedules: int = 200
    seconds: float | None = None
    menu: tuple[Strike, ...] = ()
    faults_max: int = 1
    then_us: int = FOREVER_US
    jobs: int = 1
    keep_going: bool = False


@dataclass
class Tally:
    """What was seen so far. `complete`: nothing of the scope is left; None where chance decides."""

    began_s: float = field(default_factory=time.monotonic)
    schedules: int = 0
    steps: int = 0
    longest: int = 0
    states: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    failing: list[Played] = field(default_factory=list)
    complete: bool | None = None

    def take(self, played: Played) -> None:
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


def search(stage: Stage, asked: Asked, tally: Tally) -> Iterator[Played]:
    """Each schedule that was tried, as it comes; the tally has it already."""
    found = everything(stage, asked, tally) if asked.how == "exhaustive" else _drawn(stage, asked)
    for played in found:
        tally.take(played)
        yield played
        if played.broken and not asked.keep_going:
            return
        if asked.seconds is not None and tally.seconds > asked.seconds:
            return


# -- drawn -----------------------------------------------------------------------------------------


def _drawn(stage: Stage, asked: Asked) -> Iterator[Played]:
    """The first is what happens by itself."""
    draw = _draws(stage.schedule, asked)

    def work(stage: Stage, number: int) -> Played:
        return stage.play(draw(number), then_us=asked.then_us)

    for _, played in Stages(stage).play(range(asked.schedules), work, asked.jobs):
        yield played


def _draws(schedule: Schedule, asked: Asked) -> Callable[[int], AsItComes]:
    kind = ByPriority if asked.how == "pct" else AtRandom

    def draw(number: int) -> AsItComes:
        stream = Stream(mix(schedule.seed ^ mix(number)))
        if number == 0 and not asked.menu:
            return AsItComes(schedule.steps)
        return kind(schedule.steps, stream, asked.menu, asked.faults_max)

    return draw


# -- everything ------------------------------------------------------------------------------------


class Prefix(msgspec.Struct, frozen=True):
    """What differs so far, and from which step on more may."""

    choices: tuple[Choice, ...] = ()
    faults: tuple[Strike, ...] = ()
    since: int = 0


Worth = Callable[[tuple[str, ...]], bool]
"""Whether to pass these over, in words."""


FROM_NOTHING = Prefix()


def everything(
    stage: Stage,
    asked: Asked,
    tally: Tally,
    first: Prefix = FROM_NOTHING,
    worth: Worth | None = None,
) -> Iterator[Played]:
    """Breadth first by length, from `first` on: all that differ in n places before any that differs
    in n + 1."""
    schedule, stages = stage.schedule, Stages(stage)
    met: dict[tuple[str, int], int] = {}
    level, left = [first], asked.schedules
    tally.complete = False

    def play(stage: Stage, prefix: Prefix) -> Played:
        steps = AsWritten(schedule.steps, prefix.choices, prefix.faults, exactly=True)
        return stage.play(steps, then_us=asked.then_us, states=True)

    while level:
        following: list[Prefix] = []
        for batch in _batches(level):
            batch, left = batch[:left], left - len(batch)
            results = dict(stages.play(batch, play, asked.jobs))
            for place, prefix in enumerate(batch):
                played = results[place]
                following += _more(prefix, played, asked, met, worth)
                yield played
            if left <= 0 and (following or len(batch) < BATCH):
                return
        level = following
    tally.complete = True


def _more(
    prefix: Prefix,
    played: Played,
    asked: Asked,
    met: dict[tuple[str, int], int],
    worth: Worth | None,
) -> Iterator[Prefix]:
    """Every way to differ in one more place, behind the last one."""
    used = len(prefix.faults)
    for step in range(prefix.since, len(played.offered)):
        key = played.states[step], used
        if met.get(key, step + 1) <= step:
            return
        met[key] = step
        for take in range(1, played.offered[step]):
            if worth is None or worth(played.options[step][:take]):
                yield Prefix((*prefix.choices, Choice(step, take)), prefix.faults, step + 1)
        if used < asked.faults_max:
            for one in asked.menu:
                strike = Strike(step, one.do, one.lasts)
                yield Prefix(prefix.choices, (*prefix.faults, strike), step)


def _batches(items: Sequence[Prefix]) -> Iterator[list[Prefix]]:
    waiting = iter(items)
    while batch := list(islice(waiting, BATCH)):
        yield batch


# -- what is kept ----------------------------------------------------------------------------------


def as_schedule(stage: Stage, played: Played) -> Schedule:
    """The schedule of one play, with what comes of it when it is played to its end."""
    bare = msgspec.structs.replace(
        stage.schedule, choices=played.choices, faults=played.faults, violation=None
    )

    def again() -> Played:
        steps = AsWritten(bare.steps, bare.choices, bare.faults, exactly=True)
        return stage.play(steps, digest=True)

    return with_outcome(bare, in_child(again))


def broken_of(schedule: Schedule, played: Played) -> Broken | None:
    """What a schedule is about among all that broke: what it says, else the first."""
    wanted = schedule.violation and schedule.violation.invariant
    same = (one for one in played.broken if one.invariant == wanted)
    return next(same, played.broken[0] if played.broken else None)


def with_outcome(schedule: Schedule, played: Played) -> Schedule:
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
