"""`isr shrink FILE`: a failing schedule made minimal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import OneObject, Width, orderly_end, print_json
from emulator.cli.parts.progress import ProgressLine, counted
from emulator.cli.parts.schedules import (
    keep_schedule,
    said,
    schedule_json,
    tell_broken,
    tell_lanes,
    tell_schedule,
)
from emulator.search.schedules.schedule import Schedule, read_schedule
from emulator.search.schedules.search import broken_of
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.warm_cluster import WarmCluster


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schedule (isr explore).")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where it goes; default: FILE-small.yaml.")
    ] = None,
    width: Width = None,
    as_json: OneObject = False,
) -> None:
    """Leave out of a failing schedule whatever it fails without, and show what is left.

    Faults first, then choices, then load; the same invariant has to break. What is left is exact:
    isr replay repeats it to the last event. The lane table shows it, with the violating rows
    marked. Exit code 0: it is minimal.
    """
    before = read_schedule(file)
    typer.echo(said(before), err=as_json)
    with orderly_end(), ProgressLine() as line:

        def on_progress(attempts: int, schedule: Schedule) -> None:
            faults, choices = len(schedule.faults), len(schedule.choices)
            left = f"{counted(faults, 'fault')}, {counted(choices, 'choice')} left"
            line.update(f"attempt {attempts}, {left}")

        shrinking = Shrinking(before, on_progress)
        small = shrinking.smallest()
    target = out or file.with_name(f"{file.stem}-small.yaml")
    keep_schedule(small, target)
    if as_json:
        told = {"file": str(target), "attempts": shrinking.attempts, "length_before": before.length}
        print_json({**told, "length": small.length, **schedule_json(small)})
        return
    warm = WarmCluster(small)
    played = warm.play_as_written()
    tell_lanes(warm, played, width)
    tell_schedule(small)
    about = broken_of(small, played)
    tell_broken((about,) if about else ())
    typer.echo(
        f"smaller    {before.length} -> {small.length} faults and choices, "
        f"{shrinking.attempts} attempts"
    )
    typer.echo(f"repeat it  isr replay {target}")
