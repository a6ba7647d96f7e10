"""One guided search: seeds for each group under which a run agrees with the recording in what the
cluster agreed on (state history, controllers, control requests), and perhaps in one more part.

A run that has come to the end of a group is a process; each candidate of the next group is played
in a fork of it, and goes on from there by forking again: a chain of processes, one per group. A
contradiction ends the last of them; a jump back ends several. What was good in a group is kept and
tried first when the search comes by again. Owns the way through the tree of candidates; the policy
is in `candidates`, the judging in `guided_run`. All depends on the seed: the same search tries the
same candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from emulator.conformance.compare import Examined, Reference
from emulator.conformance.criteria import DELAYS, Part
from emulator.conformance.player import Script
from emulator.kernel.rng import Choice, Stream, mix
from emulator.runs.forks import in_child
from emulator.search.guided.candidates import (
    NOWHERE,
    PATIENCE,
    Candidate,
    GroupHistory,
    Score,
    back_from,
)
from emulator.search.guided.guided_run import GuidedRun, SegmentGroup, groups_of
from emulator.search.guided.partial import RealSide
from emulator.search.guided.phases import Phases, fitted, phases_of
from emulator.search.guided.prefix import Disagreement

FREE_EVERY = 4
"""Every so many searches one trusts no fit of phases (what stands alone may be late by chance)."""

GROUPS_AT_LENGTH = 6
"""A long search may spend all its draws on so many groups."""

OnCandidate: TypeAlias = Callable[[int, bool], object]
"""Called with each candidate: its group, and whether it got through."""


@dataclass(frozen=True)
class Goal:
    """What a search looks for; read once, the same for all searches."""

    script: Script
    reference: Reference
    real: RealSide
    groups: list[SegmentGroup]
    phases: Phases


def goal_of(script: Script, reference: Reference) -> Goal:
    real = RealSide(reference.real)
    return Goal(script, reference, real, groups_of(script, real), phases_of(reference.real))


@dataclass(frozen=True)
class AgreeingRun:
    """A run that agrees in state history, controllers and control requests, by its choices."""

    seed: int
    choices: dict[Choice, int]
    examined: Examined


@dataclass(frozen=True)
class SearchResult:
    """The result of a search: its agreeing runs, and the furthest score with its choices."""

    agreeing: tuple[AgreeingRun, ...]
    seed: int
    score: Score
    choices: dict[Choice, int]


@dataclass(frozen=True)
class _Stopped:
    """A candidate that did not get to the end of its group."""

    score: Score
    wrong: Hashable
    party: str
    streams: list[Choice]


@dataclass(frozen=True)
class _Back:
    """A group is exhausted: go back to an earlier one. `to` -1: give the search up."""

    to: int
    score: Score
    party: str
    memory: Memory


_Outcome: TypeAlias = _Stopped | _Back


@dataclass
class Memory:
    """What a search knows, whichever of its processes goes on."""

    spent: int = 0
    best: dict[int, Candidate] = field(default_factory=dict)
    """By group, the candidate that was best when it was last tried."""
    streams: dict[int, list[Choice]] = field(default_factory=dict)
    """By group, the streams of the last candidate that got through."""
    records: dict[int, Score] = field(default_factory=dict)
    """By group, how far runs record_progress that had a candidate there."""
    failures: dict[int, int] = field(default_factory=dict)
    """By group, how often it was left since runs last record_progress further from there."""
    furthest: tuple[Score, dict[Choice, int]] = (NOWHERE, {})
    """How far a run record_progress at all, and under which choices."""
    agreeing: list[AgreeingRun] = field(default_factory=list)
    target: Part | None = None
    """A further part that the next run must match."""

    def record_progress(self, score: Score, choices: dict[Choice, int]) -> None:
        if score > self.furthest[0]:
            self.furthest = score, choices


@dataclass
class Search:
    """One search from the boot on, with a number of draws to spend. After a run that agrees it
    wants one of the parts that are still missing, and goes back to where that went wrong."""

    goal: Goal
    seed: int
    limit: int
    on_draw: OnCandidate
    missing: Collection[Part] | None = None
    """The parts that no earlier agreeing run has (None: no earlier run)."""
    memory: Memory = field(default_factory=Memory)

    def run(self) -> SearchResult:
        goal = self.goal
        guided_run = GuidedRun(goal.script, goal.real, goal.groups, self.seed)
        missing = sorted(self.missing or ())
        # Where delays are all that is missing, every second search wants one from the start.
        if missing and missing[-1][0] == DELAYS and not self.seed % 2:
            self.memory.target = missing[self._stream().below(len(missing))]
        self._explore(guided_run)
        score, choices = self.memory.furthest
        return SearchResult(tuple(self.memory.agreeing), self.seed, score, choices)

    def _explore(self, guided_run: GuidedRun) -> _Back:
        """From a run at the end of a group: find candidates for the rest."""
        if guided_run.over:
            return self._judge_whole(guided_run)
        memory, group, number, party = self.memory, guided_run.group, guided_run.played, ""
        is_fitted = not number and self.seed % FREE_EVERY
        tried = GroupHistory(
            group.segments,
            fitted(self.goal.phases, self.seed) if is_fitted else {},
            memory.best.get(number),
            memory.records.get(number, NOWHERE),
            group.parties,
            max(PATIENCE, self.limit // GROUPS_AT_LENGTH),
        )
        while not tried.is_exhausted:
            self.memory.spent += 1
            if self.memory.spent > self.limit:
                return self._back(-1, tried.best_score, party)
            candidate = tried.next_candidate(self._stream())
            outcome = in_child(lambda candidate=candidate: self._draw(guided_run, candidate))  # type: ignore[misc]
            match outcome:
                case _Stopped(score, wrong, party, streams):
                    self.memory.record_progress(score, {**guided_run.choices, **candidate})
                    tried.learn(candidate, score, wrong, party, streams)
                case _Back(to, score, party, memory):
                    # The child's memory has all that was tried below it.
                    self.memory = memory
                    if to < number:
                        return outcome
                    tried.learn(candidate, score, memory.spent, party, memory.streams[number])
        memory = self.memory
        if tried.best_score > memory.records.get(number, NOWHERE):
            memory.records[number] = tried.best_score
            memory.failures[number] = 0
        if tried.best is not None:
            memory.best[number] = tried.best
        return self._back(self._blamed(number), tried.best_score, party)

    def _blamed(self, number: int) -> int:
        """Which group to go back to; counts the failure of this one."""
        failures = self.memory.failures.get(number, 0)
        self.memory.failures[number] = failures + 1
        stream = self._stream()
        stopped = self._stopped_or_none(number, stream)
        return back_from(number, stream, failures) if stopped is None else stopped

    def _stopped_or_none(self, number: int, stream: Stream) -> int | None:
        """Every second time the group at whose end its brokers were stopped, if there is one."""
        stopped = stopped_after(self.goal.groups, number)
        return stopped if stopped is not None and stream.below(2) else None

    def _stream(self) -> Stream:
        """The same draws whatever process goes on: all depends on the seed and what was spent."""
        return Stream(mix(self.seed ^ mix(self.memory.spent)))

    def _draw(self, guided_run: GuidedRun, candidate: Candidate) -> _Outcome:
        """In a child: play one group, and all that follows."""
        number = guided_run.played
        guided_run.want(self.memory.target)
        contradiction = guided_run.play_next_group(candidate)
        self.on_draw(number, contradiction is None)
        if contradiction is not None:
            wrong = contradiction.wrong
            # Delays differ in every candidate: all of them go wrong in one way.
            sides = () if wrong.point == DELAYS else (wrong.real, wrong.run)
            return _Stopped(
                (number, contradiction.score),
                (wrong.point, wrong.key, *sides),
                f"broker-{broker_named(wrong)}",
                guided_run.streams(),
            )
        self.memory.best[number] = candidate
        self.memory.streams[number] = guided_run.streams()
        return self._explore(guided_run)

    def _judge_whole(self, guided_run: GuidedRun) -> _Back:
        """The end: the whole run is judged once more, in everything."""
        number, examined = guided_run.played, self.goal.reference.examine(guided_run.whole())
        score = (number, 0)
        if not examined.agrees:
            self.memory.record_progress(score, guided_run.choices)
            return self._back(self._blamed(number), score, "")
        self.memory.agreeing.append(AgreeingRun(self.seed, guided_run.choices, examined))
        missing = still_missing(self.missing, self.memory.agreeing)
        if not missing:
            return self._back(-1, score, "")
        self.memory.target = missing[self._stream().below(len(missing))]
        # What shows in a group was decided there, in the group before, or when its brokers were
        # last stopped.
        shown, stream = guided_run.group_of(self.memory.target), self._stream()
        stopped = self._stopped_or_none(shown, stream)
        to = max(0, shown - stream.below(2)) if stopped is None else stopped
        return self._back(to, score, "")

    def _back(self, to: int, score: Score, party: str) -> _Back:
        return _Back(to, score, party, self.memory)


def still_missing(before: Collection[Part] | None, agreeing: Sequence[AgreeingRun]) -> list[Part]:
    """The parts that match in no earlier run (None: no earlier run) and in none of these."""
    missing = agreeing[0].examined.lacking if before is None else frozenset(before)
    return sorted(missing.intersection(*(run.examined.lacking for run in agreeing)))


def stopped_after(groups: Sequence[SegmentGroup], number: int) -> int | None:
    """The group after which an action last hit one of this group's target brokers: the broker's
    state then decides what it does first when it resumes.
    """
    if number >= len(groups):
        return None
    about = set(groups[number].about)
    before = (
        group for group in range(number - 1, 0, -1) if about.intersection(groups[group].about)
    )
    return next((group - 1 for group in before), None)


def broker_named(wrong: Disagreement) -> int:
    """The broker that leads the partition, or caused the entry, in a disagreement."""
    for entry in (wrong.real, wrong.run):
        if text := getattr(entry, "said", None):
            broker = int(json.loads(text).get("leader", 0))
        else:
            broker = getattr(entry, "leader", 0) or getattr(entry, "by", 0)
        if broker:
            return broker
    of_key = re.match(r"broker (\d+)", wrong.key)
    return int(of_key[1]) if of_key else 0
