"""How `isr explore`, `isr replay` and `isr shrink` show a schedule.

Owns the wording and the lanes.
"""

from __future__ import annotations

import pdb  # noqa: T100
import sys
from bdb import BdbQuit
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts.errors import writing
from emulator.cli.parts.options import print_json
from emulator.invariants.base import Violation
from emulator.kernel.scheduler import TaskFailed
from emulator.runs.broken import Broken
from emulator.search.schedules.schedule import Schedule, read_schedule, written
from emulator.search.schedules.search import broken_of
from emulator.search.schedules.warm_cluster import ScheduleResult, WarmCluster
from emulator.view.lanes import render_lanes

BEFORE_US = 500_000
SAME, DIFFERS = 0, 1


def replay_schedule(file: Path, width: int | None, *, stops: bool, as_json: bool) -> int:
    """Play a schedule again, show it, and compare it with its file. Returns the exit code."""
    schedule = read_schedule(file)
    typer.echo(headline(schedule), err=as_json)

    def debug(violation: Violation) -> None:
        """Stop in the debugger where the violating event was emitted; `up` leads to the core."""
        print(f"broken: {violation.invariant}: {violation.text}", file=sys.stderr)
        pdb.set_trace()  # noqa: T100

    warm = WarmCluster(schedule, debug if stops else None)
    try:
        played = warm.play_as_written()
        differs = difference(schedule, played)
        if as_json:
            print_json(_replay_json(file, played, differs))
        else:
            print_lanes(warm, played, width)
            print_schedule(schedule)
            print_broken(played.broken)
            typer.echo(differs or f"the same: {played.events:,} events, all of them")
            typer.echo(f"repeat it  isr replay {file}")
    except (BdbQuit, TaskFailed) as error:
        # Quitting the debugger interrupts the command.
        if isinstance(getattr(error, "error", error), BdbQuit):
            raise KeyboardInterrupt from None
        raise
    finally:
        warm.close()
    return DIFFERS if differs else SAME


def difference(schedule: Schedule, played: ScheduleResult) -> str:
    """How the result differs from the schedule; empty if it does not. A schedule written by hand
    may name only the violation, or nothing."""
    broken = [one.invariant for one in played.broken]
    if schedule.violation is not None and schedule.violation.invariant not in broken:
        return f"different: {schedule.violation.invariant} is not violated"
    if schedule.violation is None and schedule.trace and broken:
        return f"different: {broken[0]} is violated"
    if schedule.trace and schedule.trace != played.trace:
        return f"different events: {schedule.events:,} then, {played.events:,} now"
    return ""


def _replay_json(file: Path, played: ScheduleResult, differs: str) -> dict[str, object]:
    """`file`, `same`, `difference` (empty if there is none), `events`, `trace`, `violations`,
    `faults`, `choices`."""
    keys = ("invariant", "text", "hazard")
    return {
        "file": str(file),
        "same": not differs,
        "difference": differs,
        "events": played.events,
        "trace": played.trace,
        "violations": [
            {
                "found": {key: value for key in keys if (value := getattr(one, key))},
                "facts": one.facts,
                "at_us": at_us,
                "partition": one.partition or "",
                "broker": one.broker,
            }
            for one, at_us in zip(played.broken, played.broken_us, strict=True)
        ],
        "faults": msgspec.to_builtins(played.faults),
        "choices": msgspec.to_builtins(played.choices),
    }


def headline(schedule: Schedule) -> str:
    """One line about the schedule, with the seed first."""
    words = [f"seed {schedule.seed:#x}", schedule.name, f"profile {schedule.profile}"]
    words += [f"{name}={state}" for name, state in schedule.guards.items()]
    return ", ".join([*words, f"{schedule.steps} steps from {schedule.begins} on"])


def print_schedule(schedule: Schedule) -> None:
    """Print its faults and choices in order, one per line."""
    lines = [
        (s.step, f"step {s.step:>3}  {s.do}" + (f" for {s.lasts}" if s.lasts else ""))
        for s in schedule.faults
    ]
    for c in schedule.choices:
        late = f"late: {c.over}; " if c.over else ""
        first = f"first: {c.what} ({c.take + 1} of {c.of})"
        lines.append((c.step, f"step {c.step:>3}  {late}{first}"))
    for _, line in sorted(lines, key=lambda one: one[0]):
        typer.echo(line)


def print_broken(broken: tuple[Broken, ...]) -> None:
    """Print each violation in one line."""
    for one in broken:
        hazard = f" [{one.hazard}]" if one.hazard else ""
        typer.echo(f"broken     {one.invariant}: {one.text}{hazard}")


def print_lanes(warm: WarmCluster, played: ScheduleResult, width: int | None) -> None:
    """Print the lanes from the first choice to the violation, whose events are marked."""
    marked: dict[int, str] = {}
    to_us = played.virtual_us
    broken = broken_of(warm.schedule, played)
    if broken is not None:
        marked = {seq: broken.invariant for seq in broken.facts if seq >= 0}
        last = max(broken.facts)
        if last >= 0:
            to_us = warm.events[last].t - warm.up_us + BEFORE_US
    lanes = render_lanes(
        warm.events,
        from_us=max(0, warm.begins_us - BEFORE_US),
        to_us=to_us,
        width=width,
        marked=marked,
    )
    Console(width=width, highlight=False).print(lanes)


def write_schedule(schedule: Schedule, file: Path) -> None:
    """Write a schedule. Raises UserError."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written(schedule), encoding="utf-8")


def schedule_json(schedule: Schedule) -> dict[str, object]:
    """The schedule without its scenario."""
    fields = schedule.plain()
    fields.pop("scenario")
    return fields
