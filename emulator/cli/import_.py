"""`isr import DIR`: logs of a real cluster become a run."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console

from emulator.cli.parts.findings import clock_of, diagnosis_lines
from emulator.cli.parts.options import print_json
from emulator.forensics.imported import Imported, import_folders
from emulator.forensics.layouts import layout_of
from emulator.forensics.log_files import ReadOptions
from emulator.scenario.errors import UserError

SHOWN_PATTERNS = 5


def command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR", help="Directories of logs, plain or gzipped, in any subdirectories."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/import/TIME-0x0.")
    ] = Path("runs"),
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="The log4j pattern of the logs, such as '%d %p %m (%c)%n', where it is not found.",
        ),
    ] = None,
    time_zone: Annotated[
        str,
        typer.Option(metavar="ZONE", help="Zone of times without one, such as Europe/Vienna."),
    ] = "UTC",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print import.json: what was read.")
    ] = False,
) -> None:
    """Make a run from the logs of a real Kafka cluster.

    Reads state-change.log*, controller.log* and server.log* of each broker (Kafka 0.8.2 to 3.9,
    rotated, gzipped) or the output of its container, and ZooKeeper's transaction logs (log.*).
    The layout of each file is found by trying: log4j patterns of Kafka, Confluent and Strimzi,
    JSON, and these in syslog, journald, Docker's and Kubernetes' envelopes. Each file's broker is
    identified from its contents. Clock skew is corrected by causality: nothing arrives before it
    was sent. Unreadable lines are counted, and missing logs are named. The last lines name the
    known hazards whose pattern is in the logs.

    \b
      isr import /var/log/kafka
      isr import day-1 day-2 --time-zone Europe/Vienna
      isr report latest
    """
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UserError(
            f"--time-zone {time_zone}: no such time zone (such as UTC or Europe/Vienna)"
        ) from None
    options = ReadOptions(
        UTC if time_zone == "UTC" else zone, layout_of(layout) if layout is not None else None
    )
    result = import_folders(folders, out, options)
    imported, run = result.imported, result.performed.directory
    if as_json:
        print_json(imported)
        return
    console = Console(highlight=False, soft_wrap=True)
    for broker, about in imported.brokers.items():
        not_understood = sum(about.not_understood.values())
        console.print(
            f"broker {broker:<4} Kafka {about.version or '?'}: {len(about.files)} files,"
            f" {about.lines:,} lines: {about.understood:,} understood, {not_understood:,} not,"
            f" {sum(about.left_out.values()):,} of loggers unrelated to replication;"
            f" layout: {', '.join(about.layouts) or '?'}"
        )
    console.print(f"zookeeper   {imported.transactions:,} transactions")
    for line in clock_lines(imported):
        console.print(line)
    for what, count in imported.unread.items():
        console.print(f"unread      {count:,} × {what}")
    for broker, about in imported.brokers.items():
        patterns = list(about.not_understood.items())
        for pattern, count in patterns[:SHOWN_PATTERNS]:
            console.print(f"unread      {count:,} × broker {broker}: {pattern}")
        if more := len(patterns[SHOWN_PATTERNS:]):
            console.print(
                f"unread      … and {more} more patterns of broker {broker} (import.json)"
            )
    for what in imported.unknown:
        console.print(f"unknown     {what}")
    events = len(result.performed.events)
    console.print(f"events      {events:,}\nrun         {run}\nnext        isr report {run}\n")
    clock = clock_of((), imported)
    for line in diagnosis_lines(result.findings, clock, imported):
        console.print(line, markup=False)


def clock_lines(imported: Imported) -> list[str]:
    """How far each clock was ahead, and the bounds of that."""
    clocks = imported.clocks
    lines = [f"clocks      {clocks.reference} is the reference"] if clocks.reference else []
    for one in clocks.ahead:
        low = "?" if one.at_least is None else f"{one.at_least:,}"
        high = "?" if one.at_most is None else f"{one.at_most:,}"
        if (low, high) == ("?", "?"):
            text = "is not corrected: no message links it to another clock"
        elif one.ms == 0:
            text = f"agrees ({one.pairs:,} causes)"
        else:
            text = (
                f"was {abs(one.ms):,} ms {'ahead' if one.ms >= 0 else 'behind'} (between {low} and"
                f" {high} ms ahead, {one.pairs:,} causes): corrected"
            )
        lines.append(f"            {one.clock} {text}")
    if clocks.slack_ms > 1:
        lines.append(f"            causes agree only within {clocks.slack_ms} ms: clocks drift")
    return lines
