"""`isr fuzz`: random worlds, seed after seed, until one fails."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    FirstSeed,
    GuardOption,
    OneObject,
    ProfileOption,
    PropagationOption,
    chosen_version,
    orderly_end,
    print_json,
    read_duration,
    seed_of,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.scenario.version import read_version
from emulator.search.fuzz.fuzz import FuzzTally, trials
from emulator.search.fuzz.repro import keep, replay_command
from emulator.search.fuzz.self_check import SelfCheck, run_self_checks
from emulator.search.fuzz.trial import Keep

CLEAN, FAILED, UNKNOWN = 0, 1, 2
FAILURES_SHOWN = 6


def command(
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many seeds; 100 if nothing is said.")
    ] = None,
    for_time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="For how long, such as 60s.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="K", help="Processes.")] = 1,
    seed: FirstSeed = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where a failing run goes: DIR/fuzz/TIME-SEED.")
    ] = Path("runs"),
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after a failure; the first one is kept.")
    ] = False,
    small: Annotated[
        bool, typer.Option("--shrink", help="Leave out of a failing world what it fails without.")
    ] = False,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Every world's trace into this data set (isr analyze)."),
    ] = None,
    as_json: OneObject = False,
) -> None:
    """Play random worlds in virtual time, and hold every invariant against them.

    Each seed draws a cluster, topics, clients, settings and a schedule of faults; then everything
    is healed, and the cluster must converge: the controller knows what ZooKeeper has, every broker
    shows it, no notification is left, every replica is back in the ISR. What Kafka 2.6 itself gets
    wrong is counted by name. Anything else is a failure of ours: its world is kept as a run
    directory, and the last lines printed are its seed and the command that plays it again. First
    come the canaries: hazards of the catalogue that the same code has to find each time.

    Exit code 0: no failure of ours; 1: one, or a canary that was not noticed; 2: broken off before
    one was found.
    """
    first = seed_of(seed)
    chosen = chosen_version(profile, guard, propagation)
    read_version({}, chosen)
    tally = FuzzTally()
    number = runs if runs is not None or for_time is not None else 100
    seconds = None if for_time is None else read_duration(f"--time {for_time}", for_time) / 1e6
    record: Keep | None = None
    if parquet is not None:
        from emulator.analysis.sweep.recording import keep_random

        record = partial(keep_random, parquet, chosen)
    of = "" if runs is None else f" of {runs}"
    broken_off = False
    checks: tuple[SelfCheck, ...] = ()
    try:
        with orderly_end(), ProgressLine(total=runs) as line:
            print(f"seeds from {first:#x}", file=sys.stderr, flush=True)
            checks = run_self_checks()
            for trial in trials(first, number, seconds, jobs, chosen, record):
                tally.take(trial)
                line.update(
                    lambda: (
                        f"{tally.trials}{of} seeds, {tally.trials / tally.seconds:.1f} per second, "
                        f"{tally.events:,} events, {len(tally.failed)} failed, "
                        f"{tally.hazards.total()} with a hazard of Kafka's"
                    ),
                    tally.trials,
                )
                if trial.ours and not keep_going:
                    break
    except KeyboardInterrupt:
        broken_off = True
    kept = keep(tally.failed[0], out, chosen, small=small) if tally.failed else None
    if as_json:
        print_json({**_json(tally, first, kept, broken_off=broken_off), "canaries": checks})
    else:
        for one in checks:
            if one.missed:
                typer.echo(
                    f"canary {one.name} NOT NOTICED: {', '.join(one.missed)} held; the checkers"
                )
                typer.echo("  are blind, and what follows means nothing")
            else:
                typer.echo(f"canary {one.name} noticed: {', '.join(one.breaks)}")
        _report(tally, kept, broken_off=broken_off)
    blind = any(one.missed for one in checks)
    raise typer.Exit(FAILED if tally.failed or blind else UNKNOWN if broken_off else CLEAN)


def _report(tally: FuzzTally, kept: Path | None, *, broken_off: bool) -> None:
    typer.echo(
        f"{tally.trials} seeds in {tally.seconds:.1f} s "
        f"({tally.trials / tally.seconds:.2f} per second), {tally.events:,} events, "
        f"{tally.virtual_us / 1e6:,.0f} s of virtual time{', broken off' * broken_off}"
    )
    for name, count in sorted(tally.hazards.items()):
        typer.echo(f"{name}: {count} seeds, such as {tally.examples[name]:#x}")
    if kept is None:
        typer.echo("no failure")
        return
    typer.echo(f"{len(tally.failed)} failed: {', '.join(f'{t.seed:#x}' for t in tally.failed)}")
    trial = tally.failed[0]
    for failure in trial.ours[:FAILURES_SHOWN]:
        broker = f"broker {failure.broker}" if failure.broker else ""
        where = " ".join(filter(None, (failure.partition, broker)))
        typer.echo(f"  {failure.invariant}{f' ({where})' if where else ''}: {failure.text}")
    if len(trial.ours) > FAILURES_SHOWN:
        typer.echo(f"  and {len(trial.ours) - FAILURES_SHOWN} more")
    typer.echo(f"run directory  {kept}")
    typer.echo(f"seed           {trial.seed:#x}")
    typer.echo(f"repeat it      {replay_command(kept, trial.seed)}")


def _json(
    tally: FuzzTally, first: int, kept: Path | None, *, broken_off: bool
) -> dict[str, object]:
    """`first_seed`, `seeds`, `seconds`, `seeds_per_second`, `events`, `virtual_ms`, `hazards` (name
    to count), `failed` (each with its seed and failures), `broken_off`, `run_directory`,
    `repeat` (null without a failure); beside them `canaries` (each with what it breaks, and what of
    that was missed)."""
    failed = [
        {
            "seed": trial.seed,
            "failures": [
                {
                    "what": one.invariant,
                    "text": one.text,
                    "hazard": one.hazard,
                    "partition": one.partition or "",
                    "broker": one.broker,
                }
                for one in trial.ours
            ],
        }
        for trial in tally.failed
    ]
    repeat = None if kept is None else replay_command(kept, tally.failed[0].seed)
    return {
        "first_seed": first,
        "seeds": tally.trials,
        "seconds": round(tally.seconds, 3),
        "seeds_per_second": round(tally.trials / tally.seconds, 3),
        "events": tally.events,
        "virtual_ms": tally.virtual_us // 1000,
        "hazards": dict(sorted(tally.hazards.items())),
        "failed": failed,
        "broken_off": broken_off,
        "run_directory": None if kept is None else str(kept),
        "repeat": repeat,
    }
