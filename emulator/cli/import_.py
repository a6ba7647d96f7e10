"""`isr import DIR`: logs of a real cluster become a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.forensics.clocks import Ahead
from emulator.forensics.imported import Imported, OfBroker, import_folder

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
        typer.echo(msgspec.json.encode(imported))
        return
    console = Console(highlight=False, soft_wrap=True)
    for broker, about in imported.brokers.items():
        console.print(_of_broker(broker, about))
    console.print(f"zookeeper   {imported.transactions:,} transactions")
    for line in clock_lines(imported):
        console.print(line)
    for line in _unread(imported):
        console.print(line)
    for what in imported.unknown:
        console.print(f"unknown     {what}")
    events = len(result.performed.events)
    console.print(f"events      {events:,}\nrun         {run}\nnext        isr report {run}")


def _of_broker(broker: int, about: OfBroker) -> str:
    not_understood = sum(about.not_understood.values())
    return (
        f"broker {broker:<4} Kafka {about.version or '?'}: {len(about.files)} files,"
        f" {about.lines:,} lines: {about.understood:,} understood, {not_understood:,} not,"
        f" {sum(about.left_out.values()):,} of loggers that tell nothing of replication"
    )


def clock_lines(imported: Imported) -> list[str]:
    """How far each clock was ahead, and what bounds that."""
    clocks = imported.clocks
    lines = [f"clocks      {clocks.reference} is the reference"] if clocks.reference else []
    lines += [f"            {one.clock} {_ahead(one)}" for one in clocks.ahead]
    if clocks.slack_ms > 1:
        lines.append(f"            causes agree only within {clocks.slack_ms} ms: clocks drift")
    return lines


def _ahead(one: Ahead) -> str:
    way = "ahead" if one.ms >= 0 else "behind"
    if one.at_least is None and one.at_most is None:
        return "is taken as it is: nothing ties it to the others"
    if one.ms == 0:
        return f"agrees ({one.pairs:,} causes)"
    low = "?" if one.at_least is None else f"{one.at_least:,}"
    high = "?" if one.at_most is None else f"{one.at_most:,}"
    return (
        f"was {abs(one.ms):,} ms {way} (between {low} and {high} ms ahead, {one.pairs:,} causes):"
        " corrected"
    )


def _unread(imported: Imported) -> list[str]:
    lines = [f"unread      {count:,} × {what}" for what, count in imported.unread.items()]
    for broker, about in imported.brokers.items():
        patterns = list(about.not_understood.items())
        for pattern, count in patterns[:SHOWN_PATTERNS]:
            lines.append(f"unread      {count:,} × broker {broker}: {pattern}")
        if len(patterns) > SHOWN_PATTERNS:
            rest = len(patterns) - SHOWN_PATTERNS
            lines.append(f"unread      … and {rest} more patterns of broker {broker} (import.json)")
    return lines
