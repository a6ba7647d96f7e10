"""`isr fuzz`: random clusters, seed after seed, until one fails."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    FirstSeed,
    GuardOption,
    JsonOption,
    ProfileOption,
    PropagationOption,
    chosen_version,
    interrupt_on_signals,
    print_json,
    read_duration,
    read_seed,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.scenario.errors import UserError
from emulator.scenario.version import VersionOptions, read_version
from emulator.search.fuzz.campaign import Campaign
from emulator.search.fuzz.fuzz import FuzzTally, every_version, trials
from emulator.search.fuzz.repro import keep, repeated, replay_command
from emulator.search.fuzz.self_check import SelfCheck, run_self_checks
from emulator.search.fuzz.trial import Keep
from emulator.search.fuzz.worlds import AS_USUAL
from emulator.view.event_text import counted

CLEAN, FAILED, UNKNOWN = 0, 1, 2
FAILURES_SHOWN = 6


def command(
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of seeds; default: 100.")
    ] = None,
    for_time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="Time limit, such as 60s.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="K", help="Parallel processes.")] = 1,
    seed: FirstSeed = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write a failing run to DIR/fuzz/TIME-SEED.")
    ] = Path("runs"),
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Continue after a failure; only the first is saved."),
    ] = False,
    small: Annotated[
        bool, typer.Option("--shrink", help="Reduce the failing world to a minimal one.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option(
            "--every-version", help="Each profile and each propagation that it has, in turn."
        ),
    ] = False,
    storage: Annotated[
        bool,
        typer.Option(
            "--storage", help="Logs in files of a modelled disk; disk faults are drawn as well."
        ),
    ] = False,
    forever: Annotated[
        bool,
        typer.Option("--forever", help="No limit; needs --state, and goes on after failures."),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write each trial to DIR and go on from there the next time; failing runs and"
            " a page of findings are kept in it too.",
        ),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Add every trace to this data set (isr analyze)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play random clusters in virtual time, and check every invariant.

    Each seed draws a cluster, topics, clients, settings and faults. At the end all faults are
    healed, and the cluster must converge: controller and brokers agree with ZooKeeper, no
    notification is left, every replica is in the ISR. Known hazards of Kafka are counted by name.
    Anything else is a failure of the emulator: its run is saved, and the output ends with its seed
    and the command that repeats it. Self-checks run first: known hazards that must be detected.

    \b
      isr fuzz --runs 20 --seed 1
      isr fuzz --every-version --forever --jobs 4 --state fuzzing

    Exit codes: 0 no failure; 1 a failure, or a self-check missed its hazard; 2 interrupted.
    """
    first = read_seed(seed)
    versions = _versions(chosen_version(profile, guard, propagation), every=every)
    if forever and (state is None or runs is not None or for_time is not None):
        raise UserError("--forever needs --state, and has no --runs and no --time")
    campaign = None if state is None else Campaign(state, first, small=small)
    first = first if campaign is None else campaign.next_seed
    counts = FuzzTally()
    number = runs if forever or runs is not None or for_time is not None else 100
    seconds = None if for_time is None else read_duration(f"--time {for_time}", for_time) / 1e6
    record: Keep | None = None
    if parquet is not None:
        from emulator.analysis.sweep.recording import keep_random

        record = partial(keep_random, parquet)
    of = "" if runs is None else f" of {runs}"
    broken_off = False
    checks: tuple[SelfCheck, ...] = ()
    try:
        with interrupt_on_signals(), campaign or nullcontext(), ProgressLine(total=runs) as line:
            print(f"seeds from {first:#x}", file=sys.stderr, flush=True)
            checks = run_self_checks()
            if campaign is not None:
                campaign.keep_missing()
            for trial in trials(first, number, seconds, jobs, versions, record, storage=storage):
                counts.take(trial)
                if campaign is not None:
                    campaign.record(trial)
                line.update(
                    lambda: (
                        f"{counts.trials}{of} seeds, "
                        f"{counts.trials / counts.seconds:.1f} per second, "
                        f"{counts.events:,} events, {len(counts.failed)} failed, "
                        f"{counts.hazards.total()} with a known hazard"
                    ),
                    counts.trials,
                )
                if trial.ours and not (keep_going or forever):
                    break
    except KeyboardInterrupt:
        broken_off = True
    repro = None
    if counts.failed:
        failed = counts.failed[0]
        repro = campaign.directory_of(failed) if campaign else keep(failed, out, small=small)
    if as_json:
        print_json({**_json(counts, first, repro, broken_off=broken_off), "self_checks": checks})
    else:
        _report_self_checks(checks)
        _report(counts, repro, broken_off=broken_off)
        if campaign is not None:
            seeds = counted(campaign.totals.trials, "seed")
            failures = len(campaign.totals.failed)
            typer.echo(f"state          {campaign.path}: {seeds} in all, {failures} failed")
    blind = any(one.missed for one in checks)
    raise typer.Exit(FAILED if counts.failed or blind else UNKNOWN if broken_off else CLEAN)


def _versions(chosen: VersionOptions, *, every: bool) -> tuple[VersionOptions, ...]:
    """The versions of the worlds. Raises UserError."""
    read_version({}, chosen)
    if every and chosen != AS_USUAL:
        raise UserError("--every-version: leave out --profile, --guard and --propagation")
    return every_version() if every else (chosen,)


def _report_self_checks(checks: tuple[SelfCheck, ...]) -> None:
    for one in checks:
        if one.missed:
            typer.echo(f"self-check {one.name} FAILED: {', '.join(one.missed)} held; the checkers")
            typer.echo("  miss known hazards, so the results below prove nothing")
        else:
            typer.echo(f"self-check {one.name} passed: {', '.join(one.breaks)} violated")


def _report(counts: FuzzTally, repro: Path | None, *, broken_off: bool) -> None:
    typer.echo(
        f"{counted(counts.trials, 'seed')} in {counts.seconds:.1f} s "
        f"({counts.trials / counts.seconds:.2f} per second), {counts.events:,} events, "
        f"{counts.virtual_us / 1e6:,.0f} s of virtual time{', interrupted' * broken_off}"
    )
    for name, count in sorted(counts.hazards.items()):
        typer.echo(f"{name}: {counted(count, 'seed')}, such as {counts.examples[name]:#x}")
    if not counts.failed:
        typer.echo("no failure")
        return
    typer.echo(f"{len(counts.failed)} failed: {', '.join(f'{t.seed:#x}' for t in counts.failed)}")
    trial = counts.failed[0]
    for failure in trial.ours[:FAILURES_SHOWN]:
        broker = f"broker {failure.broker}" if failure.broker else ""
        where = " ".join(filter(None, (failure.partition, broker)))
        typer.echo(f"  {failure.invariant}{f' ({where})' if where else ''}: {failure.text}")
    if len(trial.ours) > FAILURES_SHOWN:
        typer.echo(f"  and {len(trial.ours) - FAILURES_SHOWN} more")
    typer.echo(f"the whole      {repeated(trial)}")
    typer.echo(f"run directory  {repro or 'none: interrupted before it was written'}")
    typer.echo(f"seed           {trial.seed:#x}")
    if repro is not None:
        typer.echo(f"repeat it      {replay_command(repro, trial.seed)}")


def _json(
    counts: FuzzTally, first: int, repro: Path | None, *, broken_off: bool
) -> dict[str, object]:
    """`first_seed`, `seeds`, `seconds`, `seeds_per_second`, `events`, `virtual_ms`, `hazards` (name
    to count), `failed` (each with its seed and failures), `broken_off`, `run_directory`, `repeat`
    (null without a failure), and `self_checks` (each with the invariants that it violates, and
    those that were not detected)."""
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
        for trial in counts.failed
    ]
    repeat = None if repro is None else replay_command(repro, counts.failed[0].seed)
    return {
        "first_seed": first,
        "seeds": counts.trials,
        "seconds": round(counts.seconds, 3),
        "seeds_per_second": round(counts.trials / counts.seconds, 3),
        "events": counts.events,
        "virtual_ms": counts.virtual_us // 1000,
        "hazards": dict(sorted(counts.hazards.items())),
        "failed": failed,
        "broken_off": broken_off,
        "run_directory": None if repro is None else str(repro),
        "repeat": repeat,
    }
