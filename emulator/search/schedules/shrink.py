"""A failing schedule made minimal: faults first, then choices, then load.

Owns what is left out in which order, and what counts as failing in the same way (the same
invariant).
Where several choices are left it is searched, breadth first, whether fewer do that make the same
things late. What is left is played once more, so that the schedule is exact. Prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from emulator.runs.forks import in_child
from emulator.runs.minimize import minimize
from emulator.scenario.errors import UserError
from emulator.search.schedules.schedule import Schedule
from emulator.search.schedules.search import (
    Candidate,
    ExploreTally,
    SearchOptions,
    broken_of,
    everything,
    with_outcome,
)
from emulator.search.schedules.strategies import WrittenOrder
from emulator.search.schedules.warm_cluster import ScheduleResult, WarmCluster

ATTEMPTS_MAX = 400
SEARCHED_MAX = 400
LOAD = ("workload",)
MARGIN_US = 500_000
"""How long what broke is played on: a smaller schedule may break a little later."""
OnAttempt = Callable[[int, Schedule], None]


class Shrinking:
    """One schedule on its way down. What broke while it ran is not played on for long."""

    def __init__(self, schedule: Schedule, on_attempt: OnAttempt | None = None) -> None:
        self.attempts = 0
        self._on_attempt = on_attempt
        self._warm_cluster = WarmCluster(schedule)
        played = self._played(schedule, exactly=True)
        broken = broken_of(schedule, played)
        if broken is None:
            raise UserError("the schedule does not fail: there is nothing to make smaller")
        self._invariant = broken.invariant
        self.schedule = with_outcome(schedule, played)
        broken_us = played.broken_us[played.broken.index(broken)]
        if broken_us >= 0:
            self._end_at(broken_us + MARGIN_US)

    def _end_at(self, ends_us: int) -> None:
        if ends_us < self._warm_cluster.ends_us:
            shorter = msgspec.structs.replace(self.schedule, ends=f"{ends_us // 1000}ms")
            self._warm_cluster = WarmCluster(shorter)
            self.schedule = with_outcome(shorter, self._played(shorter, exactly=True))

    def smallest(self) -> Schedule:
        """The least that still fails in the same way."""
        self._without("faults")
        self._scenario_without("faults")
        self._without("choices")
        for section in LOAD:
            self._scenario_without(section)
        self._without("choices")
        self._with_fewer_choices()
        return self.schedule

    def _without(self, name: str) -> None:
        def attempt(entries: Sequence[Any]) -> bool:
            return self._try(msgspec.structs.replace(self.schedule, **{name: tuple(entries)}))

        minimize(getattr(self.schedule, name), attempt)

    def _scenario_without(self, section: str) -> None:
        def attempt(entries: Sequence[Any]) -> bool:
            less = {**self.schedule.scenario, section: list(entries)}
            return self._try(msgspec.structs.replace(self.schedule, scenario=less))

        minimize(self.schedule.scenario.get(section) or [], attempt)

    def _with_fewer_choices(self) -> None:
        """Fewer choices than are left when none can be missed: one may stand for several."""
        if len(self.schedule.choices) < 2:
            return
        schedule, warm = self.schedule, self._warm_of(self.schedule)
        late = {words for choice in schedule.choices for words in choice.over.split("; ")}
        options = SearchOptions(how="exhaustive", schedules=SEARCHED_MAX, faults_max=0)
        first = Candidate(faults=schedule.faults)
        for played in everything(warm, options, ExploreTally(), first, late.issuperset):
            if played.length >= schedule.length:
                return
            self._tell()
            if self._is_it(played):
                less = msgspec.structs.replace(warm.schedule, choices=played.choices)
                self.schedule = with_outcome(less, self._played(less, exactly=True))
                return

    def _try(self, schedule: Schedule) -> bool:
        """Whether it fails in the same way; then it is the one to go on with."""
        if self.attempts >= ATTEMPTS_MAX:
            return False
        self._tell()
        try:
            played = self._played(schedule, exactly=False)
        except UserError:
            return False
        if not self._is_it(played):
            return False
        self.schedule = with_outcome(schedule, played)
        return True

    def _is_it(self, played: ScheduleResult) -> bool:
        return any(one.invariant == self._invariant for one in played.broken)

    def _tell(self) -> None:
        self.attempts += 1
        if self._on_attempt is not None:
            self._on_attempt(self.attempts, self.schedule)

    def _played(self, schedule: Schedule, *, exactly: bool) -> ScheduleResult:
        """In a process of its own: nothing of it is left. As long as the scenario is the same, all
        share one warm start."""
        warm = self._warm_of(schedule)
        steps = WrittenOrder(schedule.steps, schedule.choices, schedule.faults, exactly=exactly)
        return in_child(lambda: warm.play(steps, digest=True))

    def _warm_of(self, schedule: Schedule) -> WarmCluster:
        if schedule.scenario != self._warm_cluster.schedule.scenario:
            self._warm_cluster = WarmCluster(schedule)
        return self._warm_cluster
