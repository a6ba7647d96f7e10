"""`isr shrink FILE`: reduce a failing schedule to a minimal one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import JsonOption, Width, interrupt_on_signals, print_json
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.schedules import (
    headline,
    print_broken,
    print_lanes,
    print_schedule,
    schedule_json,
    write_schedule,
)
from emulator.search.schedules.schedule import Schedule, read_schedule
from emulator.search.schedules.search import broken_of
from emulator.search.schedules.shrink import Shrinking
from emulator.search.schedules.warm_cluster import WarmCluster
from emulator.view.event_text import counted


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A failing schedule (isr explore).")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the result here; default: FILE-small.yaml."),
    ] = None,
    width: Width = None,
    as_json: JsonOption = False,
) -> None:
    """Reduce a failing schedule to a minimal one, and show it.

    Removes faults first, then choices, then load, as long as the same invariant is violated.
    isr replay repeats the result exactly. The lanes mark the violation.

    \b
      isr shrink runs/explore/leader-crash-0x1.yaml

    Exit code 0: the schedule is minimal.
    """
    before = read_schedule(file)
    typer.echo(headline(before), err=as_json)
    with interrupt_on_signals(), ProgressLine() as line:

        def on_progress(attempts: int, schedule: Schedule) -> None:
            faults, choices = len(schedule.faults), len(schedule.choices)
            left = f"{counted(faults, 'fault')}, {counted(choices, 'choice')} left"
            line.update(f"attempt {attempts}, {left}")

        shrinking = Shrinking(before, on_progress)
        small = shrinking.smallest()
    target = out or file.with_name(f"{file.stem}-small.yaml")
    write_schedule(small, target)
    if as_json:
        summary = {
            "file": str(target),
            "attempts": shrinking.attempts,
            "length_before": before.length,
        }
        print_json({**summary, "length": small.length, **schedule_json(small)})
        return
    warm = WarmCluster(small)
    played = warm.play_as_written()
    print_lanes(warm, played, width)
    print_schedule(small)
    about = broken_of(small, played)
    print_broken((about,) if about else ())
    typer.echo(
        f"smaller    {before.length} -> {small.length} faults and choices, "
        f"{shrinking.attempts} attempts"
    )
    typer.echo(f"repeat it  isr replay {target}")
