"""A guided match from the search to its verdict.

The runs of a match are judged like any runs. Its delays are judged over these and twenty reruns of
their choices with other latencies. This module must not know how the search works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from emulator.conformance.compare import Examined, Reference, Verdict, conclude
from emulator.conformance.player import Script, simulate
from emulator.conformance.recording import Recording
from emulator.runs.forks import in_order
from emulator.search.guided.choices import (
    RERUNS,
    Choices,
    ChosenRun,
    choices_of,
    chosen_run,
    replay,
    with_other_latencies,
)
from emulator.search.guided.prefix import Disagreement
from emulator.search.guided.restarts import Budget, OnProgress, Progress, Restarts
from emulator.search.guided.search import AgreeingRun, SearchResult, goal_of

T = TypeVar("T")
Look = Callable[[object, Recording], T]
"""Converts each run to a result, in the process that played it; called with the run's name."""


@dataclass(frozen=True)
class GuidedMatch:
    """The result of a guided search. Without a match, `choices` are those of the agreeing runs, or
    of the furthest one.
    """

    is_match: bool
    choices: Choices
    verdict: Verdict
    progress: Progress | None
    """None: kept choices were played again."""
    reruns_agreeing: int
    wrong: Disagreement | None = None
    """Without a match: where the run that came furthest is wrong, as far as a search ended."""

    @property
    def is_confirmed(self) -> bool:
        """Whether its runs match when they are judged again, with reruns. With enough runs that
        agree, only these define the range of a delay (`emulator.conformance.compare`)."""
        return self.is_match and self.verdict.matched


def guided(
    reference: Reference,
    script: Script,
    budget: Budget,
    look: Look[Examined],
    on_progress: OnProgress,
) -> GuidedMatch:
    goal = goal_of(script, reference)

    result = Restarts(goal, budget, on_progress).run()
    best = result.agreeing or (result.nearest,)
    runs = [_run_of(one) if one else ChosenRun(1, ()) for one in best]
    draws: dict[str, int] = {}
    for group, number in sorted(result.progress.draws.items()):
        segments = goal.groups[group].segments
        last = f"-{segments[-1]}" if len(segments) > 1 else ""
        label = f"{segments[0]}{last}"
        draws[label] = draws.get(label, 0) + number
    choices = choices_of(reference.real, runs, draws)
    reruns = RERUNS if result.matched else 0
    verdict, agreeing = judge_choices(reference, script, choices, look, budget.jobs, reruns)
    nearest = None if result.agreeing else result.nearest
    wrong = nearest.wrong if nearest else None
    return GuidedMatch(result.matched, choices, verdict, result.progress, agreeing, wrong)


def judge_choices(
    reference: Reference,
    script: Script,
    choices: Choices,
    look: Look[Examined],
    jobs: int,
    reruns: int = RERUNS,
) -> tuple[Verdict, int]:
    """The verdict over the runs of these choices and their reruns, and how many of the reruns
    agree. The choices share the number of reruns."""
    runs = choices.runs
    streams = [replay(script, run)[1] for run in runs] if reruns else []
    names = [*names_of(choices), *(f"rerun-{nth:02}" for nth in range(1, reruns + 1))]

    def play(number: int) -> Examined:
        of, nth = number % len(runs), max(0, number - len(runs) + 1)
        chosen = with_other_latencies(runs[of], streams[of], nth) if nth else runs[of].by_stream
        played = simulate(script, runs[of].seed, chosen)
        return look(names[number], replace(played, name=names[number]))

    examined = list(in_order(range(len(names)), play, jobs))
    return conclude(reference, examined), sum(run.agrees for run in examined[len(runs) :])


def names_of(choices: Choices) -> list[str]:
    """The names of a match's runs."""
    many = len(choices.runs) > 1
    return [f"match-{n}" if many else "match" for n, _ in enumerate(choices.runs, 1)]


def _run_of(one: AgreeingRun | SearchResult) -> ChosenRun:
    return chosen_run(one.seed, one.choices)
