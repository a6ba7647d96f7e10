"""`isr explore`: what can happen, schedule after schedule, from one warm start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from emulator.cli.parts.async_isr import MODEL, explore_async_isr
from emulator.cli.parts.options import (
    GuardOption,
    OneObject,
    ProfileOption,
    PropagationOption,
    Seed,
    chosen_version,
    orderly_end,
    print_json,
    read_duration,
    seed_of,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.schedules import (
    keep_schedule,
    said,
    schedule_json,
    tell_broken,
    tell_schedule,
)
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.load import load
from emulator.scenario.shipped import find
from emulator.search.schedules.coverage_goals import COVERAGE_GOALS, never
from emulator.search.schedules.schedule import Schedule, schedule_of
from emulator.search.schedules.search import ExploreTally, SearchOptions, as_schedule, search
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.warm_cluster import FOREVER_US, WarmCluster, read_injection

CLEAN, FOUND, UNKNOWN = 0, 1, 2
OUT = Path("runs/explore")


Strategy = Annotated[
    Literal["random", "pct", "exhaustive"],
    typer.Option(help="Who chooses: chance, drawn priorities, or every way there is."),
]
Begins = Annotated[str, typer.Option("--from", metavar="TIME", help="When the choosing begins.")]
Steps = Annotated[int, typer.Option(min=1, help="At how many points it is chosen.")]
Window = Annotated[
    str, typer.Option(metavar="TIME", help="How much later than it would a thing may happen.")
]
Then = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long it goes on then; default: to its end.")
]
Schedules = Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")]
ForTime = Annotated[
    str | None, typer.Option("--time", metavar="TIME", help="For how long, such as 60s.")
]
Fault = Annotated[
    list[str] | None,
    typer.Option(help="One that may strike at any step: 'pause 3 for 8s'; may be repeated."),
]
Faults = Annotated[int, typer.Option(min=0, metavar="N", help="How many of them in one schedule.")]
Converged = Annotated[
    bool, typer.Option("--converged", help="Also what must have come about by the end.")
]
Sometimes = Annotated[
    list[str] | None,
    typer.Option(metavar="WORDS", help="What must have been seen; may be repeated."),
]
Small = Annotated[bool, typer.Option("--shrink", help="Make the failing schedule minimal.")]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Go on after a violation; the first is kept.")
]


def command(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help=f"A name (isr scenarios), a YAML file, or {MODEL}."
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
    sometimes: Sometimes = None,
    seed: Seed = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    small: Small = False,
    keep_going: KeepGoing = False,
    jobs: Annotated[int, typer.Option(min=1, metavar="K", help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where a failing schedule goes.")] = OUT,
    as_json: OneObject = False,
) -> None:
    """Choose wherever more than one thing can happen next, schedule after schedule.

    Which thread runs, which message or watch is delivered, and (with --fault) which fault strikes
    when. All schedules begin with the same warm start. Faults are bounded, healing is not. What
    fails is kept as a file, which isr replay repeats exactly and isr shrink makes minimal. With
    async-isr in place of a scenario: the model of asynchronous ISR updates, all of its states.

    Exit code 0: nothing was violated; 1: something was; 2: unknown, for no race was run at all (or
    not the one that was asked for with --sometimes).
    """
    version = chosen_version(profile, guard, propagation)
    if scenario == MODEL:
        raise typer.Exit(explore_async_isr(version, as_json=as_json))
    schedule = schedule_of(
        load(find(scenario), chosen=version),
        seed_of(seed),
        begins=begins,
        window=window,
        steps=steps,
        liveness=converged,
    )
    options = SearchOptions(
        how=strategy,
        schedules=schedules,
        seconds=read_duration(f"--time {for_time}", for_time) / 1e6 if for_time else None,
        menu=tuple(read_injection(one, schedule) for one in fault or ()),
        faults_max=faults,
        then_us=FOREVER_US if then is None else read_duration(f"--then {then}", then),
        jobs=jobs,
        keep_going=keep_going,
    )
    goals = tuple(sometimes or ())
    for name in goals:
        if name not in COVERAGE_GOALS:
            raise UserError(f"--sometimes {name}: {instead_of(name, COVERAGE_GOALS)}")
    typer.echo(said(schedule), err=as_json)
    read_duration(f"--from {begins}", begins)
    read_duration(f"--window {window}", window)
    tally, warm, broken_off = ExploreTally(), WarmCluster(schedule), False
    try:
        with orderly_end(), ProgressLine() as line:
            for _ in search(warm, options, tally):
                line.update(
                    lambda: (
                        f"{tally.schedules} schedules of at most {schedules}, "
                        f"{tally.schedules / tally.seconds:.1f} per second, "
                        f"{len(tally.failing)} failing"
                    )
                )
    except KeyboardInterrupt:
        broken_off = True
    kept = None
    if tally.failing:
        failing = as_schedule(warm, tally.failing[0])
        failing = Shrinking(failing).smallest() if small else failing
        kept = out / f"{failing.name}-{failing.seed:#x}.yaml", failing
        keep_schedule(failing, kept[0])
    # That nothing was found says something only where a race was run.
    exercised = all(tally.seen[name] for name in goals) if goals else bool(tally.seen)
    code = FOUND if tally.failing else CLEAN if exercised and not broken_off else UNKNOWN
    if as_json:
        print_json(_json(schedule, tally, kept, code))
    else:
        _report(tally, goals, kept, code)
    raise typer.Exit(code)


def _report(
    tally: ExploreTally, goals: tuple[str, ...], kept: tuple[Path, Schedule] | None, code: int
) -> None:
    states = ""
    if tally.complete is not None:
        complete = "complete" if tally.complete else "not complete"
        states = f", {len(tally.states):,} states, {complete}"
    typer.echo(
        f"schedules  {tally.schedules:,} ({tally.schedules / tally.seconds:.1f} per second), "
        f"{tally.steps:,} steps{states}"
    )
    for name in COVERAGE_GOALS:
        if tally.seen[name] or name in goals:
            typer.echo(f"seen       {tally.seen[name]:>6,} × {name}")
    typer.echo(f"never      {', '.join(never(tally.seen)) or 'nothing'}")
    words = {CLEAN: "nothing violated", FOUND: "violated", UNKNOWN: "unknown: no race was run"}
    typer.echo(f"verdict    {words[code]}")
    if kept is not None:
        file, schedule = kept
        tell_schedule(schedule)
        assert schedule.violation is not None
        tell_broken((schedule.violation,))
        typer.echo(f"failing    {len(tally.failing)}, the first in {file}")
        typer.echo(f"repeat it  isr replay {file}")


def _json(
    schedule: Schedule, tally: ExploreTally, kept: tuple[Path, Schedule] | None, code: int
) -> dict[str, object]:
    """`seed`, `scenario`, `schedules`, `per_second`, `steps`, `states`, `complete` (null where
    chance chooses), `seen` (name to count), `never`, `failing`, `verdict` (0, 1, 2), `file` and
    `schedule` (null without a violation)."""
    return {
        "seed": schedule.seed,
        "scenario": schedule.name,
        "schedules": tally.schedules,
        "per_second": round(tally.schedules / tally.seconds, 3),
        "steps": tally.steps,
        "states": len(tally.states),
        "complete": tally.complete,
        "seen": dict(sorted(tally.seen.items())),
        "never": never(tally.seen),
        "failing": len(tally.failing),
        "verdict": code,
        "file": str(kept[0]) if kept else None,
        "schedule": schedule_json(kept[1]) if kept else None,
    }
