"""`isr import DIR`: logs of a real cluster become a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from emulator.cli.parts.options import print_json
from emulator.forensics.imported import Imported, import_folder

SHOWN_PATTERNS = 5


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Directory of logs, plain or gzipped, in any subdirectories."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/import/TIME-0x0.")
    ] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print import.json: what was read.")
    ] = False,
) -> None:
    """Make a run from the logs of a real Kafka cluster.

    Reads state-change.log*, controller.log* and server.log* of each broker (rotated, gzipped, in
    the default patterns of Kafka 0.8.2 to 3.9) and ZooKeeper's transaction logs (log.*). Each
    file's broker is identified from its contents. Clock skew is corrected by causality: nothing
    arrives before it was sent. Unreadable lines are counted, and missing logs are named.

    \b
      isr import /var/log/kafka
      isr report latest
    """
    result = import_folder(folder, out)
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
            f" {sum(about.left_out.values()):,} of loggers unrelated to replication"
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
    console.print(f"events      {events:,}\nrun         {run}\nnext        isr report {run}")


def clock_lines(imported: Imported) -> list[str]:
    """How far each clock was ahead, and what bounds that."""
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
