"""One guided search: seeds for each group with which a run agrees with the recording in state
history, controllers and control requests, and optionally in one more part.

A run at the end of a group is a process. Each candidate of the next group is played in a fork of
it, which forks again to continue: a chain of processes, one per group. A contradiction ends the
last of them; a jump back ends several. The best candidate of a group is kept, and tried first when
the search returns to the group. Owns the traversal of the tree of candidates; the policy is in
`candidates`, the judgement in `guided_run`. The seed determines everything: the same search tries
the same candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeAlias

from emulator.conformance.compare import Examined, Reference
from emulator.conformance.criteria import DELAYS, SESSION_OF, Part
from emulator.conformance.player import Script
from emulator.kernel.rng import Choice, Stream, mix
from emulator.runs.forks import in_child
from emulator.search.guided.candidates import (
    NOWHERE,
    PATIENCE,
    Candidate,
    GroupHistory,
    Moment,
    Score,
    back_from,
    since_us,
)
from emulator.search.guided.guided_run import GuidedRun, SegmentGroup, group_at, groups_of
from emulator.search.guided.partial import RealSide
from emulator.search.guided.phases import Phases, fitted, phases_of
from emulator.search.guided.prefix import GRACE_MS, LOOSE_MS, UNTIMED_MS, Disagreement
from emulator.search.guided.standstills import Standstill, fitted_standstills, standstills_of

GROUPS_AT_LENGTH = 6
"""A long search may spend all its draws on this many groups."""

OnCandidate: TypeAlias = Callable[[int, bool], object]
"""Called with each candidate: its group, and whether it got through."""


@dataclass(frozen=True)
class Goal:
    """The goal of a search; prepared once for all searches."""

    script: Script
    reference: Reference
    real: RealSide
    groups: list[SegmentGroup]
    phases: Phases
    standstills: tuple[Standstill, ...]


def goal_of(script: Script, reference: Reference) -> Goal:
    real = RealSide(reference)
    starts_ms = [step.at_us // 1000 for step in script.scenario.steps]
    phases = phases_of(reference.real, script.scenario.running, starts_ms)
    standstills = standstills_of(reference.real, script.scenario.steps)
    return Goal(script, reference, real, groups_of(script, real), phases, standstills)


@dataclass(frozen=True)
class AgreeingRun:
    """The choices of a run that agrees in state history, controllers and control requests, and the
    parts that a match needs beside it."""

    seed: int
    choices: dict[Choice, int]
    examined: Examined
    lacking: frozenset[Part]


@dataclass(frozen=True)
class SearchResult:
    """The agreeing runs of a search, and the furthest score with its choices and its contradiction
    (None: the whole run was judged)."""

    agreeing: tuple[AgreeingRun, ...]
    seed: int
    score: Score
    choices: dict[Choice, int]
    wrong: Disagreement | None = None


def sample(goal: Goal, seed: int, on_draw: OnCandidate) -> SearchResult:
    """One run, of which only phases and standstills are chosen, until its first contradiction."""
    run = GuidedRun(goal.script, goal.real, goal.groups, seed, UNTIMED_MS)
    with closing(run):
        while not run.over:
            number = run.played
            contradiction = run.play_next_group(_fitted(goal, seed, run.group))
            on_draw(number, contradiction is None)
            if contradiction is not None:
                score = number, *contradiction.score
                return SearchResult((), seed, score, run.choices, contradiction.wrong)
        examined = goal.reference.examine(run.whole())
        agreeing = [_agreeing_run(goal, run, examined)] if examined.agrees else []
        return SearchResult(tuple(agreeing), seed, (run.played, 0, 0), run.choices)


def _fitted(
    goal: Goal, seed: int, group: SegmentGroup, *, has_boots: bool = False
) -> dict[Choice, int]:
    """Phases and standstills are chosen when their group begins; parts of a divided group have
    none. `has_boots`: a run that is improved keeps the phases of its boots."""
    if group.since:
        return {}
    phases = {} if has_boots else fitted(goal.phases, seed, group.segments)
    return phases | fitted_standstills(goal.standstills, seed, group.segments)


def _agreeing_run(goal: Goal, run: GuidedRun, examined: Examined) -> AgreeingRun:
    return AgreeingRun(run.seed, run.choices, examined, goal.reference.lacking(examined))


@dataclass(frozen=True)
class _Stopped:
    """A candidate that failed before the end of its group."""

    score: Score
    wrong: Disagreement
    alike: Hashable
    """The same for all candidates that fail alike."""
    party: str
    streams: list[Choice]
    wrong_at: Moment | None


@dataclass(frozen=True)
class _Back:
    """A group is exhausted: return to group `to`. -1: end the search."""

    to: int
    score: Score
    party: str
    memory: Memory


_Outcome: TypeAlias = _Stopped | _Back


@dataclass
class Memory:
    """The state of a search, shared by its processes."""

    spent: int = 0
    best: dict[int, Candidate] = field(default_factory=dict)
    """For each group, the best candidate when it was last tried."""
    streams: dict[int, list[Choice]] = field(default_factory=dict)
    """For each group, the streams of the last candidate that got through."""
    records: dict[int, Score] = field(default_factory=dict)
    """For each group, the furthest score of runs with a candidate there."""
    failures: dict[int, int] = field(default_factory=dict)
    """For each group, how often the search left it since the last progress beyond it."""
    furthest: tuple[Score, dict[Choice, int], Disagreement | None] = (NOWHERE, {}, None)
    """The furthest score of any run, its choices, and its contradiction."""
    agreeing: list[AgreeingRun] = field(default_factory=list)
    target: Part | None = None
    """A further part that the next run must match."""

    def record_progress(
        self, score: Score, choices: dict[Choice, int], wrong: Disagreement | None = None
    ) -> None:
        if score > self.furthest[0]:
            self.furthest = score, choices, wrong


@dataclass
class Search:
    """One search from the boot on, with a limited number of draws. It targets one of the parts that
    agreeing runs lack, and after each of its own goes back to where the next target differed."""

    goal: Goal
    number: int
    limit: int
    on_draw: OnCandidate
    missing: Collection[Part] | None = None
    """The parts that no earlier agreeing run has (None: no earlier run)."""
    start: AgreeingRun | SearchResult | None = None
    """The run whose choices are tried first in each group; None: a new one."""
    memory: Memory = field(default_factory=Memory)

    def run(self) -> SearchResult:
        goal, seed, grace_ms = self.goal, self.number, GRACE_MS
        if self.start is not None:
            seed, grace_ms = self.start.seed, LOOSE_MS
            self.memory.best.update(choices_by_group(goal.groups, self.start.choices))
        if missing := sorted(self.missing or ()):
            self.memory.target = missing[self._stream().below(len(missing))]
        self._explore(GuidedRun(goal.script, goal.real, goal.groups, seed, grace_ms))
        score, choices, wrong = self.memory.furthest
        return SearchResult(tuple(self.memory.agreeing), seed, score, choices, wrong)

    def _explore(self, guided_run: GuidedRun) -> _Back:
        """From a run at the end of a group, find candidates for the rest."""
        if guided_run.over:
            return self._judge_whole(guided_run)
        memory, group, number, party = self.memory, guided_run.group, guided_run.played, ""
        last_wrong: Disagreement | None = None
        tried = GroupHistory(
            group.segments,
            _fitted(self.goal, self.number, group, has_boots=self.start is not None),
            memory.best.get(number),
            memory.records.get(number, NOWHERE),
            group.parties,
            max(PATIENCE, self.limit // GROUPS_AT_LENGTH),
            group.since,
        )
        while not tried.is_exhausted:
            self.memory.spent += 1
            if self.memory.spent > self.limit:
                return self._back(-1, tried.best_score, party)
            candidate = tried.next_candidate(self._stream())
            outcome = in_child(lambda candidate=candidate: self._draw(guided_run, candidate))  # type: ignore[misc]
            match outcome:
                case _Stopped(score, wrong, alike, party, streams, wrong_at):
                    last_wrong = wrong
                    choices = {**guided_run.choices, **candidate}
                    self.memory.record_progress(score, choices, wrong)
                    tried.learn(candidate, score, alike, party, streams, wrong_at)
                case _Back(to, score, party, memory):
                    # The child's memory includes everything that its own children tried.
                    has_another_target = memory.target != self.memory.target
                    self.memory = memory
                    if to < number:
                        return outcome
                    tried.learn(candidate, score, memory.spent, party, memory.streams[number])
                    if has_another_target:
                        tried.begin_anew()
        memory = self.memory
        if tried.best_score > memory.records.get(number, NOWHERE):
            memory.records[number] = tried.best_score
            memory.failures[number] = 0
        if tried.best is not None:
            memory.best[number] = tried.best
        return self._back(self._blamed(number, last_wrong), tried.best_score, party)

    def _blamed(self, number: int, wrong: Disagreement | None = None) -> int:
        """Which group to return to; counts the failure of this one."""
        failures = self.memory.failures.get(number, 0)
        self.memory.failures[number] = failures + 1
        stream = self._stream()
        if wrong is not None and wrong.key.startswith(SESSION_OF) and stream.below(2):
            # The broker's pings follow its last request at fixed intervals, and the last of them
            # determines when its session ends.
            broker = int(wrong.key.removeprefix(SESSION_OF))
            heard_ms = self.goal.real.last_request_ms(broker, wrong.at_ms)
            return min(number - 1, group_at(self.goal.groups, heard_ms))
        stopped = self._stopped_or_none(number, stream)
        return back_from(number, stream, failures) if stopped is None else stopped

    def _stopped_or_none(self, number: int, stream: Stream) -> int | None:
        """Every second time the group at whose end its brokers were stopped, if there is one."""
        stopped = stopped_after(self.goal.groups, number)
        return stopped if stopped is not None and stream.below(2) else None

    def _stream(self) -> Stream:
        """The same draws in whatever process continues: they depend only on the seed and the draws
        spent."""
        return Stream(mix(self.number ^ mix(self.memory.spent)))

    def _draw(self, guided_run: GuidedRun, candidate: Candidate) -> _Outcome:
        """Play one group and all that follows, in a child."""
        number = guided_run.played
        guided_run.want(self.memory.target)
        contradiction = guided_run.play_next_group(candidate)
        self.on_draw(number, contradiction is None)
        if contradiction is not None:
            wrong = contradiction.wrong
            # Delays differ in every candidate, so all of them count as failing alike.
            sides = () if wrong.point == DELAYS else (wrong.real, wrong.run)
            return _Stopped(
                (number, *contradiction.score),
                wrong,
                (wrong.point, wrong.key, *sides),
                f"broker-{broker_named(wrong)}",
                guided_run.streams(),
                None if wrong.race_ms is None else guided_run.moment(wrong.race_ms),
            )
        self.memory.best[number] = candidate
        self.memory.streams[number] = guided_run.streams()
        return self._explore(guided_run)

    def _judge_whole(self, guided_run: GuidedRun) -> _Back:
        """Judge the complete run once more, in all parts."""
        number, examined = guided_run.played, self.goal.reference.examine(guided_run.whole())
        score = (number, 0, 0)
        if not examined.agrees:
            self.memory.record_progress(score, guided_run.choices)
            return self._back(self._blamed(number), score, "")
        self.memory.agreeing.append(_agreeing_run(self.goal, guided_run, examined))
        missing = still_missing(self.missing, self.memory.agreeing)
        if not missing:
            return self._back(-1, score, "")
        self.memory.target = missing[self._stream().below(len(missing))]
        # How far runs came that did not have to match this part says nothing from now on.
        self.memory.records.clear()
        self.memory.failures.clear()
        # A difference was caused in its own group, in the previous one, or when the group's brokers
        # were last stopped.
        shown, stream = guided_run.group_of(self.memory.target), self._stream()
        stopped = self._stopped_or_none(shown, stream)
        to = max(0, shown - stream.below(2)) if stopped is None else stopped
        return self._back(to, score, "")

    def _back(self, to: int, score: Score, party: str) -> _Back:
        return _Back(to, score, party, self.memory)


def still_missing(before: Collection[Part] | None, agreeing: Sequence[AgreeingRun]) -> list[Part]:
    """The parts that match in no earlier run (None: no earlier run) and in none of these."""
    missing = agreeing[0].lacking if before is None else frozenset(before)
    return sorted(missing.intersection(*(run.lacking for run in agreeing)))


def choices_by_group(
    groups: Sequence[SegmentGroup], choices: Mapping[Choice, int]
) -> dict[int, dict[Choice, int]]:
    """The choices of a whole run, each with the group in which it holds first."""
    by_group: dict[int, dict[Choice, int]] = {number: {} for number in range(len(groups))}
    for choice, seed in choices.items():
        number = max(
            number
            for number, group in enumerate(groups)
            if choice[0] in group.segments
            and (group.since_us is None or group.since_us <= since_us(choice))
        )
        by_group[number][choice] = seed
    return by_group


def stopped_after(groups: Sequence[SegmentGroup], number: int) -> int | None:
    """The group after which an action last affected one of this group's target brokers: the
    broker's state there determines what it does first when it resumes.
    """
    if number >= len(groups):
        return None
    about = set(groups[number].about)
    before = (
        group for group in range(number - 1, 0, -1) if about.intersection(groups[group].about)
    )
    return next((group - 1 for group in before), None)


def broker_named(wrong: Disagreement) -> int:
    """The broker of a disagreement: the partition's leader, or the broker that caused the entry."""
    for entry in (wrong.real, wrong.run):
        if text := getattr(entry, "said", None):
            broker = int(json.loads(text).get("leader", 0))
        else:
            broker = getattr(entry, "leader", 0) or getattr(entry, "by", 0)
        if broker:
            return broker
    of_key = re.match(r"broker (\d+)", wrong.key)
    return int(of_key[1]) if of_key else 0
