"""`isr explore`: many schedules, all from one warm start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from emulator.cli.parts.async_isr import MODEL, explore_async_isr
from emulator.cli.parts.options import (
    GuardOption,
    JsonOption,
    ProfileOption,
    PropagationOption,
    Seed,
    chosen_version,
    interrupt_on_signals,
    print_json,
    read_duration,
    read_seed,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.schedules import (
    headline,
    print_broken,
    print_schedule,
    schedule_json,
    write_schedule,
)
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.load import load
from emulator.scenario.shipped import find
from emulator.search.schedules.coverage_goals import COVERAGE_GOALS, never
from emulator.search.schedules.schedule import Schedule, schedule_of
from emulator.search.schedules.search import ExploreTally, SearchOptions, as_schedule, search
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.warm_cluster import FOREVER_US, WarmCluster, read_injection

CLEAN, VIOLATED, UNKNOWN = 0, 1, 2
OUT = Path("runs/explore")


Strategy = Annotated[
    Literal["random", "pct", "exhaustive"],
    typer.Option(help="How to choose: at random, by random priorities, or every choice in turn."),
]
Begins = Annotated[str, typer.Option("--from", metavar="TIME", help="Time of the first choice.")]
Steps = Annotated[int, typer.Option(min=1, help="Choices per schedule.")]
Window = Annotated[str, typer.Option(metavar="TIME", help="How long a choice may delay an event.")]
Then = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time to play after the last choice; default: to the end."),
]
Schedules = Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of schedules.")]
ForTime = Annotated[
    str | None, typer.Option("--time", metavar="TIME", help="Time limit, such as 60s.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option(help="A fault that may happen at any choice: 'pause 3 for 8s'; may be repeated."),
]
Faults = Annotated[
    int, typer.Option(min=0, metavar="N", help="Maximum number of faults in one schedule.")
]
Converged = Annotated[
    bool, typer.Option("--converged", help="Also check that the cluster converged by the end.")
]
CoverageGoals = Annotated[
    list[str] | None,
    typer.Option(
        "--sometimes", metavar="WORDS", help="A race that must have occurred; may be repeated."
    ),
]
Small = Annotated[
    bool, typer.Option("--shrink", help="Reduce the failing schedule to a minimal one.")
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Continue after a violation; only the first is saved.")
]


def command(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help=f"A name from isr scenarios, a YAML file, or {MODEL}."
        ),
    ],
    strategy: Strategy = "random",
    begins: Begins = "3s",
    steps: Steps = 20,
    window: Window = "20ms",
    then: Then = None,
    schedules: Schedules = 200,
    for_time: ForTime = None,
    fault: Fault = None,
    faults: Faults = 1,
    converged: Converged = False,
    coverage_goals: CoverageGoals = None,
    seed: Seed = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    small: Small = False,
    keep_going: KeepGoing = False,
    jobs: Annotated[int, typer.Option(min=1, metavar="K", help="Parallel processes.")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for the failing schedule.")
    ] = OUT,
    as_json: JsonOption = False,
) -> None:
    """Explore schedules: wherever several things could happen next, pick one.

    A choice is which thread runs, which message or watch is delivered and, with --fault, which
    fault happens. All schedules continue from the same running cluster. A failing schedule is
    saved to a file: isr replay repeats it exactly, isr shrink reduces it. With async-isr instead
    of a scenario, all states of the model of asynchronous ISR updates are searched.

    \b
      isr explore shrink-and-expand --fault 'pause 2 for 3s' --schedules 20

    Exit codes: 0 no violation; 1 a violation; 2 unknown: no race occurred, or not the one that
    --sometimes names.
    """
    version = chosen_version(profile, guard, propagation)
    if scenario == MODEL:
        raise typer.Exit(explore_async_isr(version, as_json=as_json))
    schedule = schedule_of(
        load(find(scenario), chosen=version),
        read_seed(seed),
        begins=begins,
        window=window,
        steps=steps,
        liveness=converged,
    )
    options = SearchOptions(
        strategy=strategy,
        schedules=schedules,
        seconds=read_duration(f"--time {for_time}", for_time) / 1e6 if for_time else None,
        menu=tuple(read_injection(one, schedule) for one in fault or ()),
        faults_max=faults,
        then_us=FOREVER_US if then is None else read_duration(f"--then {then}", then),
        jobs=jobs,
        keep_going=keep_going,
    )
    goals = tuple(coverage_goals or ())
    for name in goals:
        if name not in COVERAGE_GOALS:
            raise UserError(f"--sometimes {name}: {instead_of(name, COVERAGE_GOALS)}")
    typer.echo(headline(schedule), err=as_json)
    read_duration(f"--from {begins}", begins)
    read_duration(f"--window {window}", window)
    counts, warm, broken_off = ExploreTally(), WarmCluster(schedule), False
    try:
        with interrupt_on_signals(), ProgressLine() as line:
            for _ in search(warm, options, counts):
                line.update(
                    lambda: (
                        f"{counts.schedules} schedules of at most {schedules}, "
                        f"{counts.schedules / counts.seconds:.1f} per second, "
                        f"{len(counts.failing)} failing"
                    )
                )
    except KeyboardInterrupt:
        broken_off = True
    repro = None
    if counts.failing:
        failing = as_schedule(warm, counts.failing[0])
        failing = Shrinking(failing).smallest() if small else failing
        repro = out / f"{failing.name}-{failing.seed:#x}.yaml", failing
        write_schedule(failing, repro[0])
    # A search without findings is meaningful only if a race was exercised.
    exercised = all(counts.seen[name] for name in goals) if goals else bool(counts.seen)
    code = VIOLATED if counts.failing else CLEAN if exercised and not broken_off else UNKNOWN
    if as_json:
        print_json(_json(schedule, counts, repro, code))
    else:
        _report(counts, goals, repro, code)
    raise typer.Exit(code)


def _report(
    counts: ExploreTally, goals: tuple[str, ...], repro: tuple[Path, Schedule] | None, code: int
) -> None:
    states = ""
    if counts.complete is not None:
        complete = "complete" if counts.complete else "not complete"
        states = f", {len(counts.states):,} states, {complete}"
    typer.echo(
        f"schedules  {counts.schedules:,} ({counts.schedules / counts.seconds:.1f} per second), "
        f"{counts.steps:,} steps{states}"
    )
    for name in COVERAGE_GOALS:
        if counts.seen[name] or name in goals:
            typer.echo(f"seen       {counts.seen[name]:>6,} × {name}")
    typer.echo(f"never      {', '.join(never(counts.seen)) or 'nothing'}")
    words = {CLEAN: "nothing violated", VIOLATED: "violated", UNKNOWN: "unknown: no race was run"}
    typer.echo(f"verdict    {words[code]}")
    if repro is not None:
        file, schedule = repro
        print_schedule(schedule)
        assert schedule.violation is not None
        print_broken((schedule.violation,))
        typer.echo(f"failing    {len(counts.failing)}, the first in {file}")
        typer.echo(f"repeat it  isr replay {file}")


def _json(
    schedule: Schedule, counts: ExploreTally, repro: tuple[Path, Schedule] | None, code: int
) -> dict[str, object]:
    """`seed`, `scenario`, `schedules`, `per_second`, `steps`, `states`, `complete` (null for a
    random search), `seen` (name to count), `never`, `failing`, `verdict` (0, 1, 2), `file` and
    `schedule` (null without a violation)."""
    return {
        "seed": schedule.seed,
        "scenario": schedule.name,
        "schedules": counts.schedules,
        "per_second": round(counts.schedules / counts.seconds, 3),
        "steps": counts.steps,
        "states": len(counts.states),
        "complete": counts.complete,
        "seen": dict(sorted(counts.seen.items())),
        "never": never(counts.seen),
        "failing": len(counts.failing),
        "verdict": code,
        "file": str(repro[0]) if repro else None,
        "schedule": schedule_json(repro[1]) if repro else None,
    }
