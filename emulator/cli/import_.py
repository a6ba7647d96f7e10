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
        typer.Argument(metavar="DIR", help="Logs, in any folders below it; plain or gzipped."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where runs go: DIR/import/TIME-0x0.")
    ] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="What was read as one JSON object (import.json).")
    ] = False,
) -> None:
    """Make a run of the logs of a cluster that somebody else ran.

    Reads state-change.log*, controller.log* and server.log* of each broker (rotated, gzipped, the
    default patterns of Kafka 0.8.2 to 3.9) and ZooKeeper's transaction logs (log.*) where there are
    any. Whose a file is, its lines say. Clocks are corrected by what cannot be otherwise: nothing
    arrives before it was sent. Lines that are not understood are counted; what is missing is named.
    Then: isr report latest, isr show, describe, why, check.
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
            f" {sum(about.left_out.values()):,} of loggers that tell nothing of replication"
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
            text = "is taken as it is: nothing ties it to the others"
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
