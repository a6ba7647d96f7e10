"""Reduces a failing schedule to a minimal one: faults first, then choices, then load.

Owns the order of removals, and what counts as failing in the same way (the same invariant). If
several choices are left, a breadth-first search looks for fewer choices that make the same things
late. The result is played once more, so that the schedule is exact. Prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from emulator.runs.forks import in_child
from emulator.runs.minimize import minimize, minimize_section
from emulator.scenario.errors import UserError
from emulator.search.schedules.schedule import Candidate, Schedule
from emulator.search.schedules.search import (
    ExploreTally,
    SearchOptions,
    broken_of,
    everything,
    with_outcome,
)
from emulator.search.schedules.warm_cluster import ScheduleResult, WarmCluster

ATTEMPTS_MAX = 400
SEARCHED_MAX = 400
LOAD = ("workload",)
MARGIN_US = 500_000
"""How long to continue after the original moment of failure: a smaller schedule may fail a little
later."""
OnAttempt = Callable[[int, Schedule], None]


class Shrinking:
    """One schedule being reduced. Violations during the run shorten the play."""

    def __init__(self, schedule: Schedule, on_attempt: OnAttempt | None = None) -> None:
        self.attempts = 0
        self._on_attempt = on_attempt
        self._warm_cluster = WarmCluster(schedule)
        played = self._play(schedule, exactly=True)
        broken = broken_of(schedule, played)
        if broken is None:
            raise UserError("the schedule does not fail, so it cannot be reduced")
        self._invariant = broken.invariant
        self.schedule = with_outcome(schedule, played)
        broken_us = played.broken_us[played.broken.index(broken)]
        ends_us = broken_us + MARGIN_US
        # Missing liveness (-1) is visible only at the end.
        if broken_us >= 0 and ends_us < self._warm_cluster.ends_us:
            shorter = msgspec.structs.replace(self.schedule, ends=f"{ends_us // 1000}ms")
            self._warm_cluster = WarmCluster(shorter)
            self.schedule = with_outcome(shorter, self._play(shorter, exactly=True))

    def smallest(self) -> Schedule:
        """The smallest schedule that fails in the same way."""
        minimize(self.schedule.faults, lambda some: self._try_with(faults=tuple(some)))
        self._minimize_section("faults")
        self._minimize_choices()
        for section in LOAD:
            self._minimize_section(section)
        self._minimize_choices()  # less load may need fewer choices
        self._search_fewer_choices()
        return self.schedule

    def _minimize_choices(self) -> None:
        minimize(self.schedule.choices, lambda some: self._try_with(choices=tuple(some)))

    def _minimize_section(self, section: str) -> None:
        minimize_section(
            self.schedule.scenario, section, lambda less: self._try_with(scenario=less)
        )

    def _search_fewer_choices(self) -> None:
        """Look for fewer choices even if none can be removed alone: one choice may replace
        several."""
        if len(self.schedule.choices) < 2:
            return
        schedule, warm = self.schedule, self._warm_cluster_of(self.schedule)
        late = {label for choice in schedule.choices for label in choice.over.split("; ")}
        options = SearchOptions(strategy="exhaustive", schedules=SEARCHED_MAX, faults_max=0)
        first = Candidate(faults=schedule.faults)
        for played in everything(warm, options, ExploreTally(), first, late.issuperset):
            if played.length >= schedule.length:
                return
            self._count_attempt()
            if self._fails_alike(played):
                less = msgspec.structs.replace(warm.schedule, choices=played.choices)
                self.schedule = with_outcome(less, self._play(less, exactly=True))
                return

    def _try_with(self, **parts: object) -> bool:
        """Whether it fails in the same way with these parts; then it becomes the current one."""
        if self.attempts >= ATTEMPTS_MAX:
            return False
        self._count_attempt()
        schedule = msgspec.structs.replace(self.schedule, **parts)
        try:
            played = self._play(schedule, exactly=False)
        except UserError:
            return False
        if not self._fails_alike(played):
            return False
        self.schedule = with_outcome(schedule, played)
        return True

    def _fails_alike(self, played: ScheduleResult) -> bool:
        return any(one.invariant == self._invariant for one in played.broken)

    def _count_attempt(self) -> None:
        self.attempts += 1
        if self._on_attempt is not None:
            self._on_attempt(self.attempts, self.schedule)

    def _play(self, schedule: Schedule, *, exactly: bool) -> ScheduleResult:
        """Play in a separate process, so that nothing remains."""
        warm = self._warm_cluster_of(schedule)
        return in_child(lambda: warm.play_written(schedule, exactly=exactly, digest=True))

    def _warm_cluster_of(self, schedule: Schedule) -> WarmCluster:
        """Schedule of the same scenario share one warm start."""
        if schedule.scenario != self._warm_cluster.schedule.scenario:
            self._warm_cluster = WarmCluster(schedule)
        return self._warm_cluster
