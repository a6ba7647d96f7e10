"""A guided match from the search to its verdict.

The run of a match is judged as every run is; its delays are judged over it and twenty reruns of its
choices with other latencies, each played from choices alone. Owns that order of things. This module
must not know how one searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

from emulator.conformance.choices import (
    RERUNS,
    Choices,
    choices_of,
    replay,
    with_other_latencies,
)
from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.forks import in_children
from emulator.conformance.player import Script, simulate
from emulator.conformance.portfolio import Budget, OnProgress, Portfolio, Progress, Result
from emulator.conformance.recording import Recording
from emulator.conformance.search import Goal, goal_of

T = TypeVar("T")
Look = Callable[[object, Recording], T]
"""What is made of each run where it is played; it is given the run's name."""


@dataclass(frozen=True)
class Guided:
    """What came of a guided search. Without a match `choices` are those of the furthest run."""

    found: bool
    choices: Choices
    verdict: Verdict
    progress: Progress
    reruns_agreeing: int


def guided(
    reference: Reference,
    script: Script,
    budget: Budget,
    look: Look[Examined],
    on_progress: OnProgress,
) -> Guided:
    goal = goal_of(script, reference)
    result = Portfolio(goal, budget, on_progress).run()
    choices = _chosen(reference.real, goal, result)
    reruns = RERUNS if result.found else 0
    verdict, agreeing = judge_choices(reference, script, choices, look, budget.jobs, reruns)
    return Guided(result.found is not None, choices, verdict, result.progress, agreeing)


def judge_choices(
    reference: Reference,
    script: Script,
    choices: Choices,
    look: Look[Examined],
    jobs: int,
    reruns: int = RERUNS,
) -> tuple[Verdict, int]:
    """The verdict over the run of these choices and its reruns, and how many of these agree."""
    _, asked = replay(script, choices)

    def play(nth: int) -> Examined:
        chosen = with_other_latencies(choices, asked, nth) if nth else choices.by_stream
        name = f"rerun-{nth:02}" if nth else "match"
        return look(name, replace(simulate(script, choices.seed, chosen), name=name))

    examined = [
        run for _, run in sorted(in_children(range(reruns + 1), play, jobs), key=itemgetter(0))
    ]
    return conclude(reference, examined), sum(run.agrees for run in examined[1:])


def _chosen(real: Recording, goal: Goal, result: Result) -> Choices:
    best = result.found or result.nearest
    seed, chosen = (best.seed, best.choices) if best else (1, {})
    by_leg = result.progress.of_search.get(result.search, result.progress.draws)
    draws = {_stretches(goal.legs[leg].stretches): n for leg, n in sorted(by_leg.items())}
    return choices_of(real, seed, chosen, draws)


def _stretches(group: range) -> str:
    return f"{group[0]}" if len(group) == 1 else f"{group[0]}-{group[-1]}"
