"""`isr hazards [NAME]`: what Kafka gets wrong, reproduced on demand, and gone with its cure."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emulator.cli.parts.options import orderly_end, performing
from emulator.cli.parts.progress import ProgressLine
from emulator.hazards.entry import Entry, catalogue, find
from emulator.hazards.reproduce import Side, marks, play_side, span_us, stimuli_of
from emulator.hazards.state import Seen, seen
from emulator.runs.broken import Broken
from emulator.runs.play import SIMULATED
from emulator.scenario.errors import UserError

EMBEDDED = "embedded"
CODES = {"held": 0, "not held": 1, "unknown": 2}
AROUND_US = 200_000


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Reproduce this one: KAFKA-2729.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="On a real ZooKeeper server, with real sessions.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where its two runs go.")] = Path("runs"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No lane table.")] = False,
    width: Annotated[int | None, typer.Option(help="Columns; default: the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """List the hazards of Kafka's design, or reproduce one.

    A hazard is played twice: as it was, until an invariant breaks (its schedule is the smallest one
    that does it: the lane table marks the row), and with its cure (the guard that Kafka got, or a
    setting), where nothing may break. Exit code 0: both as they should be; 1: not reproduced, or
    the cure does not help; 2: unknown, since a live run was late.
    """
    if name is None:
        if live:
            raise UserError("--live: which one? isr hazards NAME --live")
        _list(width, as_json=as_json)
        return
    entry = find(name)
    if live and not entry.live:
        able = ", ".join(one.name for one in catalogue().values() if one.live)
        raise UserError(f"{entry.name} is not made for a real server; these are: {able}")
    zookeeper = EMBEDDED if live else SIMULATED
    console = Console(stderr=as_json, highlight=False, width=width, soft_wrap=True)
    _introduce(console, entry)
    sides = {}
    for cured in (False, True):
        sides[cured] = _play(entry, zookeeper, out, cured=cured)
        _tell(console, entry, sides[cured], cured=cured, lanes=not quiet, width=width)
    verdict = _verdict(sides[False], sides[True])
    console.print(Text.assemble("verdict        ", (verdict, "bold")))
    console.print(f"repeat it      {_repeat(entry, live=live)}")
    if as_json:
        typer.echo(msgspec.json.encode(_json(entry, sides[False], sides[True], verdict)))
    raise typer.Exit(CODES[verdict])


def _nameless(one: Broken) -> Broken:
    """The command is about one hazard: its name beside each violation would say nothing."""
    return msgspec.structs.replace(one, hazard="")


def _play(entry: Entry, zookeeper: str, out: Path, *, cured: bool) -> Side:
    duration_us = entry.scenario().duration_us
    with orderly_end(), ProgressLine(total=duration_us) as line:
        return performing(
            lambda: play_side(
                entry, cured=cured, zookeeper=zookeeper, base=out, on_progress=line.show_run
            )
        )


def _verdict(broken: Side, cured: Side) -> str:
    verdicts = {broken.verdict, cured.verdict}
    return "not held" if "not held" in verdicts else max(verdicts, key=CODES.__getitem__)


def _repeat(entry: Entry, *, live: bool) -> str:
    return shlex.join(["isr", "hazards", entry.name, *["--live"] * live])


# -- words -----------------------------------------------------------------------------------------


def _introduce(console: Console, entry: Entry) -> None:
    also = f" ({', '.join(entry.also)})" if entry.also else ""
    console.print(Text.assemble((f"{entry.name}{also}: {entry.title}", "bold")))
    fixed = f"; fixed in {entry.fixed}" if entry.fixed else "; never fixed"
    console.print(f"{entry.versions}{fixed}\n")
    console.print(Text(entry.story), soft_wrap=False)
    console.print(f"\nseed {entry.seed:#x}, {len(stimuli_of(entry.scenario()))} steps")
    one = seen().get(entry.name)
    if one is not None:
        console.print(f"schedule       {one.length}")


def _tell(
    console: Console, entry: Entry, side: Side, *, cured: bool, lanes: bool, width: int | None
) -> None:
    with_what = f"with {shlex.join(entry.cure.words)}" if cured else "as it was"
    console.print(Text(f"\n{with_what}", "bold"))
    if lanes and not cured:
        _lanes(console, side, width)
    if not cured and not side.as_wanted:
        missing = sorted(set(entry.violates) - {one.invariant for one in side.wanted})
        console.print(Text(f"NOT REPRODUCED   {', '.join(missing)} held", "bold red"))
    _violations(console, side)
    if cured and side.as_wanted:
        console.print(Text.assemble(("held    ", "green"), "  nothing is broken"))
    if cured and entry.cure.because:
        console.print(f"          {entry.cure.because}")
    if side.late:
        console.print("          the kernel ran late: unknown")
    console.print(f"run directory  {side.directory}")


def _lanes(console: Console, side: Side, width: int | None) -> None:
    from emulator.view.lanes import render_lanes

    marked = marks(side)
    first, last = span_us(side, marked)
    console.print(
        render_lanes(
            side.events,
            partition=next((one.topic_partition for one in side.wanted if one.partition), None),
            from_us=max(0, first - AROUND_US),
            to_us=last + AROUND_US,
            marked=marked,
            width=width,
        )
    )


def _violations(console: Console, side: Side) -> None:
    """Each invariant once, as it was seen first; expectations that were not held."""
    from emulator.cli.parts.run_report import print_violations

    first: dict[str, Broken] = {}
    for one in side.wanted:
        first.setdefault(one.invariant, _nameless(one))
    print_violations(console, list(first.values()), list(side.events))
    for judged in side.expectations:
        if not judged.held:
            line = Text.assemble(("NOT HELD", "bold red"), f"  {judged.text}   {judged.seen}")
            console.print(line)


def _list(width: int | None, *, as_json: bool) -> None:
    if as_json:
        entries = [_entry_json(one) for one in catalogue().values()]
        typer.echo(msgspec.json.encode({"hazards": entries}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("hazard", "seen", "cure", "live", "commit"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what goes wrong")
    for entry in catalogue().values():
        table.add_row(entry.name, *_state(entry, seen().get(entry.name)), entry.title)
    Console(highlight=False, width=width).print(table)
    typer.echo("\nseen: reproduced in virtual time; cure: with it nothing breaks; live: seen on a")
    typer.echo("real ZooKeeper server, too (can be: isr hazards NAME --live tries it)")


def _state(entry: Entry, one: Seen | None) -> tuple[Text, ...]:
    """What was seen of it when the catalogue was last played, and on which commit."""
    if one is None:
        return Text("not tried", "yellow"), Text(), Text("can be" if entry.live else ""), Text()
    return (
        Text("yes") if one.reproduced else Text("NO", "bold red"),
        Text("holds") if one.cured else Text("FAILS", "bold red"),
        Text(_live(one) if entry.live else ""),
        Text(one.commit),
    )


def _live(one: Seen) -> str:
    if one.live is None:
        return "can be"
    return "yes" if one.live.seen else "NO"


def _entry_json(entry: Entry) -> dict[str, object]:
    """`name`, `title`, `also`, `facts`, `versions`, `fixed`, `violates`, `cure` (options of `isr
    run`), `live`, `steps`, `file`, `seen` (what `make hazards` saw; null: not tried)."""
    one = seen().get(entry.name)
    return {
        "name": entry.name,
        "title": entry.title,
        "also": entry.also,
        "facts": entry.facts,
        "versions": entry.versions,
        "fixed": entry.fixed,
        "violates": entry.violates,
        "cure": entry.cure.words,
        "live": entry.live,
        "steps": len(stimuli_of(entry.scenario())),
        "file": str(entry.path),
        "seen": one,
    }


def _json(entry: Entry, broken: Side, cured: Side, verdict: str) -> dict[str, object]:
    """What `isr hazards --json` has of it, with `seed`, `verdict`, and `broken` and `cured`:
    `verdict`, `violations` and `expectations` as in summary.json, `wall_ms`, `events`,
    `run_directory`."""
    sides = {"broken": _side_json(broken), "cured": _side_json(cured)}
    return {**_entry_json(entry), "seed": entry.seed, "verdict": verdict, **sides}


def _side_json(side: Side) -> dict[str, object]:
    return {
        "verdict": side.verdict,
        "violations": [_nameless(one) for one in side.violations],
        "expectations": side.expectations,
        "wall_ms": side.wall_ms,
        "events": len(side.events),
        "run_directory": str(side.directory),
    }
