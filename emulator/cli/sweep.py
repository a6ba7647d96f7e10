"""`isr sweep SCENARIO`: play a grid of runs on Spark executors, and store a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from emulator.cli.analyze import SparkConf, SparkMaster, settings_of
from emulator.cli.parts.options import (
    GuardOption,
    JsonOption,
    ScenarioArgument,
    interrupt_on_signals,
    print_json,
    read_seed,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.scenario import shipped
from emulator.scenario.document import read_text
from emulator.scenario.errors import UserError

if TYPE_CHECKING:
    from emulator.analysis.sweep.spark import Progress

FIRST_SEED = "1"


def command(
    scenario: ScenarioArgument,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The data set: a new or empty directory.")
    ],
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per combination.")] = 100,
    seed: Annotated[
        str, typer.Option(metavar="N", help="First seed, decimal or 0x...")
    ] = FIRST_SEED,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=A,B", help="Values of a Kafka setting; may be repeated."
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="A,B", help="Kafka versions (isr profiles).")
    ] = "",
    propagation: Annotated[
        str,
        typer.Option(
            metavar="zk,rpc", help="Who writes ISR changes: leader (zk), controller (rpc)."
        ),
    ] = "",
    guard: GuardOption = None,
    traces: Annotated[
        str, typer.Option(metavar="all|violations|none", help="Runs whose events are stored.")
    ] = "all",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted sweep.")
    ] = False,
    master: SparkMaster = "local[*]",
    conf: SparkConf = None,
    as_json: JsonOption = False,
) -> None:
    """Play every combination of settings, versions and paths with every seed on Spark.

    The rows do not depend on the number of executors. Ctrl-C keeps complete batches, and --resume
    continues after them.

    \b
      isr sweep brief-lag --out data --seeds 20 --profile 2.4,2.6
      isr analyze data

    Exit codes: 0 no invariant was violated; 1 one was, in some run; 130 interrupted.
    """
    from emulator.analysis import session
    from emulator.analysis.sweep.grid import TRACES, grid_of, points
    from emulator.analysis.sweep.spark import prepare, sweep

    if traces not in TRACES:
        raise UserError(f"--traces {traces}: {', '.join(TRACES)}")
    source = shipped.find(scenario)
    profiles, propagations = (
        [one.strip() for one in text.split(",") if one.strip()] for text in (profile, propagation)
    )
    chosen = points(sets or [], profiles, propagations, guard or [])
    grid = grid_of(source, read_text(source, str(source)), chosen, read_seed(seed), seeds)
    name = scenario if scenario in shipped.shipped() else str(source)
    grid = msgspec.structs.replace(grid, traces=traces, source=name)
    settings = settings_of(conf)
    session.check_master(master)
    left = prepare(grid, out, resume=resume)
    print(
        f"seeds from {grid.first_seed:#x}; {grid.runs:,} runs, "
        f"{sum(len(batch.seeds) for batch in left):,} to play; Spark starts",
        file=sys.stderr,
        flush=True,
    )
    last: list[Progress] = []
    spark = session.start(master, {**session.sized(0), **settings})
    try:
        with interrupt_on_signals(), ProgressLine(total=grid.runs, shown=not as_json) as line:

            def on_progress(progress: Progress) -> None:
                last[:] = [progress]
                line.update(lambda: describe(progress), progress.runs)

            sweep(spark.sparkContext, grid, out.resolve(), left, on_progress)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; continue with --resume --out {out}", err=True)
        raise
    finally:
        spark.stop()
    progress = last[0]
    if as_json:
        print_json(
            {
                "runs": progress.runs,
                "violated": progress.violated,
                "seconds": round(progress.seconds, 3),
                "runs_per_second": round(progress.per_second, 3),
                "data_set": str(out),
            }
        )
    else:
        typer.echo(
            f"{progress.runs:,} runs in {len(grid.points)} settings, {progress.violated:,} with a "
            f"broken invariant; {progress.seconds:.1f} s, {progress.per_second:.1f} runs per second"
        )
        typer.echo(f"data set       {out}")
        typer.echo(f"tables         isr analyze {out}")
    raise typer.Exit(1 if progress.violated else 0)


def describe(progress: Progress) -> str:
    """`120 of 2,000 runs, 31.2 per second, 60 s left, 0 with a broken invariant`."""
    left = "" if progress.left_s is None else f"about {progress.left_s:.0f} s left, "
    return (
        f"{progress.runs:,} of {progress.of:,} runs, {progress.per_second:.1f} per second, {left}"
        f"{progress.violated:,} with a broken invariant"
    )
