"""One guided search: seeds for each leg under which a run agrees with the recording in what the
cluster agreed on (points 1, 3 and 4), and perhaps in one part more.

A run that has come to the end of a leg is a process; each draw of the next leg is played in a fork
of it, and goes on from there by forking again: a chain of processes, one per leg. A contradiction
ends the last of them; a jump back ends several. What was good in a leg is kept and tried first
when the search comes by again. Owns this walk over the tree of draws; the policy is in `draws`,
the judging in `walk`. All depends on the seed: the same search makes the same draws.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from emulator.conformance.compare import Examined, Reference
from emulator.conformance.criteria import DELAYS, Part
from emulator.conformance.player import Script
from emulator.kernel.rng import Choice, Stream, mix
from emulator.runs.forks import in_child
from emulator.search.guided.candidates import NOWHERE, PATIENCE, Draw, Score, Tried, back_from
from emulator.search.guided.guided_run import Leg, Walk, legs_of
from emulator.search.guided.partial import RealSide
from emulator.search.guided.phases import Phases, fitted, phases_of
from emulator.search.guided.prefix import Disagreement

FREE_EVERY = 4
"""Every so many searches one trusts no fit of phases (what stands alone may be late by chance)."""

LEGS_AT_LENGTH = 6
"""A long search may spend all its draws on so many legs."""

OnDraw: TypeAlias = Callable[[int, bool], object]
"""Told of each draw: its leg, and whether it got through."""


@dataclass(frozen=True)
class Goal:
    """What a search looks for; read once, the same for all searches."""

    script: Script
    reference: Reference
    real: RealSide
    legs: list[Leg]
    phases: Phases


def goal_of(script: Script, reference: Reference) -> Goal:
    real = RealSide(reference.real)
    return Goal(script, reference, real, legs_of(script, real), phases_of(reference.real))


@dataclass(frozen=True)
class Found:
    """A run that agrees in points 1, 3 and 4, by its choices."""

    seed: int
    choices: dict[Choice, int]
    examined: Examined


@dataclass(frozen=True)
class Ended:
    """The search is over: what it found, and how far it came, and under which choices."""

    found: tuple[Found, ...]
    seed: int
    score: Score
    choices: dict[Choice, int]


@dataclass(frozen=True)
class _Stopped:
    """A draw that did not get to the end of its leg."""

    score: Score
    wrong: Hashable
    party: str
    asked: list[Choice]


@dataclass(frozen=True)
class _Back:
    """A leg is exhausted: go back to an earlier one. `to` -1: give the search up."""

    to: int
    score: Score
    party: str
    memory: Memory


_Outcome: TypeAlias = _Stopped | _Back


@dataclass
class Memory:
    """What a search knows, whichever of its processes goes on."""

    spent: int = 0
    best: dict[int, Draw] = field(default_factory=dict)
    """By leg, the draw that was best when it was last tried."""
    asked: dict[int, list[Choice]] = field(default_factory=dict)
    """By leg, the streams of the last draw that got through."""
    records: dict[int, Score] = field(default_factory=dict)
    """By leg, how far runs came that had a draw there."""
    vain: dict[int, int] = field(default_factory=dict)
    """By leg, how often it was left since runs last came further from there."""
    furthest: tuple[Score, dict[Choice, int]] = (NOWHERE, {})
    """How far a run came at all, and under which choices."""
    found: list[Found] = field(default_factory=list)
    wanted: Part | None = None
    """What a run must have besides what all must."""

    def came(self, score: Score, choices: dict[Choice, int]) -> None:
        if score > self.furthest[0]:
            self.furthest = score, choices


@dataclass
class Search:
    """One search from the boot on, with a number of draws to spend. After a run that agrees it
    wants one of the parts that are still missing, and goes back to where that went wrong."""

    goal: Goal
    seed: int
    limit: int
    on_draw: OnDraw
    missing: Collection[Part] | None = None
    """The parts that no run had yet that was found before (None: there was no run)."""
    memory: Memory = field(default_factory=Memory)

    def run(self) -> Ended:
        goal = self.goal
        walk = Walk(goal.script, goal.real, goal.legs, self.seed)
        self.memory.wanted = self._delay()
        self._explore(walk)
        score, choices = self.memory.furthest
        return Ended(tuple(self.memory.found), self.seed, score, choices)

    def _explore(self, walk: Walk) -> _Back:
        """From a walk at the end of a leg: find draws for the rest."""
        if walk.over:
            return self._arrived(walk)
        number, tried, party = walk.taken, self._tried(walk), ""
        while not tried.is_exhausted:
            self.memory.spent += 1
            if self.memory.spent > self.limit:
                return self._back(-1, tried.best_score, party)
            draw = tried.next_draw(self._stream())
            outcome = in_child(lambda draw=draw: self._draw(walk, draw))  # type: ignore[misc]
            match outcome:
                case _Stopped(score, wrong, party, asked):
                    self.memory.came(score, {**walk.choices, **draw})
                    tried.learn(draw, score, wrong, party, asked)
                case _Back(to, score, party, memory):
                    self.memory = memory
                    if to < number:
                        return outcome
                    tried.learn(draw, score, memory.spent, party, memory.asked[number])
        self._remember(number, tried)
        return self._back(self._blamed(number), tried.best_score, party)

    def _tried(self, walk: Walk) -> Tried:
        number, memory = walk.taken, self.memory
        is_fitted = not number and self.seed % FREE_EVERY
        fixed = fitted(self.goal.phases, self.seed) if is_fitted else {}
        record = memory.records.get(number, NOWHERE)
        leg = walk.leg
        patience = max(PATIENCE, self.limit // LEGS_AT_LENGTH)
        return Tried(leg.stretches, fixed, memory.best.get(number), record, leg.parties, patience)

    def _blamed(self, number: int) -> int:
        """Which leg to go back to; that this one was left in vain is noted."""
        vain = self.memory.vain.get(number, 0)
        self.memory.vain[number] = vain + 1
        stream, stopped = self._stream(), stopped_after(self.goal.legs, number)
        if stopped is not None and stream.below(2):
            return stopped
        return back_from(number, stream, vain)

    def _remember(self, number: int, tried: Tried) -> None:
        memory = self.memory
        record = memory.records.get(number, NOWHERE)
        if tried.best_score > record:
            memory.records[number] = tried.best_score
            memory.vain[number] = 0
        if tried.best is not None:
            memory.best[number] = tried.best

    def _stream(self) -> Stream:
        """The same draws whatever process goes on: all depends on the seed and what was spent."""
        return Stream(mix(self.seed ^ mix(self.memory.spent)))

    def _draw(self, walk: Walk, draw: Draw) -> _Outcome:
        """In a child: play one leg, and all that follows."""
        number = walk.taken
        walk.want(self.memory.wanted)
        contradiction = walk.go_on(draw)
        self.on_draw(number, contradiction is None)
        if contradiction is not None:
            found = contradiction.found
            wrong = (found.point, found.key, *_sides(found))
            score = (number, contradiction.score)
            return _Stopped(score, wrong, f"broker-{broker_named(found)}", walk.asked())
        self.memory.best[number], self.memory.asked[number] = draw, walk.asked()
        return self._explore(walk)

    def _arrived(self, walk: Walk) -> _Back:
        """The end: the whole run is judged once more, in everything."""
        number, examined = walk.taken, self.goal.reference.examine(walk.whole())
        if not examined.agrees:
            self.memory.came((number, 0), walk.choices)
            return self._back(self._blamed(number), (number, 0), "")
        self.memory.found.append(Found(self.seed, walk.choices, examined))
        missing = still_missing(self.missing, self.memory.found)
        if not missing:
            return self._back(-1, (number, 0), "")
        self.memory.wanted = wanted = missing[self._stream().below(len(missing))]
        return self._back(self._decided(walk.leg_of(wanted)), (number, 0), "")

    def _delay(self) -> Part | None:
        """Where delays are all that is missing, every second search wants one from the start."""
        missing = sorted(self.missing or ())
        if self.seed % 2 or not missing or missing[-1][0] != DELAYS:
            return None
        return missing[self._stream().below(len(missing))]

    def _decided(self, shown: int) -> int:
        """In which leg that was decided which shows in this one: there, the leg before, or when
        its brokers were last stopped."""
        stream, stopped = self._stream(), stopped_after(self.goal.legs, shown)
        if stopped is not None and stream.below(2):
            return stopped
        return max(0, shown - stream.below(2))

    def _back(self, to: int, score: Score, party: str) -> _Back:
        return _Back(to, score, party, self.memory)


def _sides(found: Disagreement) -> tuple[Hashable, ...]:
    """What each side has there. Delays differ in every draw: all of them go wrong in one way."""
    return () if found.point == DELAYS else (found.real, found.run)


def still_missing(before: Collection[Part] | None, found: Sequence[Found]) -> list[Part]:
    """What no run is equal in: none that was found before (None: there was none), none of these."""
    missing = found[0].examined.lacking if before is None else frozenset(before)
    return sorted(missing.intersection(*(run.examined.lacking for run in found)))


def stopped_after(legs: Sequence[Leg], number: int) -> int | None:
    """The leg at whose end something was last done to a broker that this leg's stimuli are about:
    what it had then decides what it does first when it goes on."""
    if number >= len(legs):
        return None
    about = set(legs[number].about)
    before = (leg for leg in range(number - 1, 0, -1) if about.intersection(legs[leg].about))
    return next((leg - 1 for leg in before), None)


def broker_named(found: Disagreement) -> int:
    """Who leads or did what the two sides disagree about."""
    named = (_named(entry) for entry in (found.real, found.run))
    of_key = re.match(r"broker (\d+)", found.key)
    return next((b for b in named if b), int(of_key[1]) if of_key else 0)


def _named(entry: Any) -> int:
    if said := getattr(entry, "said", None):
        return int(json.loads(said).get("leader", 0))
    return getattr(entry, "leader", 0) or getattr(entry, "by", 0) or 0
