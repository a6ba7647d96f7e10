"""`isr hazards [NAME]`: known defects of Kafka, reproduced, and prevented by their cure."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emulator.cli.parts.options import (
    JsonOption,
    Width,
    interrupt_on_signals,
    play_or_explain,
    print_json,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.run_report import EXIT_CODES, print_violations
from emulator.hazards.entry import Entry, catalogue, find
from emulator.hazards.reproduce import Side, actions_of, marks, play_side, span_us
from emulator.hazards.state import seen
from emulator.runs.broken import Broken
from emulator.runs.play import SIMULATED
from emulator.scenario.errors import UserError

EMBEDDED = "embedded"
AROUND_US = 200_000


def command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The hazard to reproduce, such as KAFKA-2729."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Use a real ZooKeeper server and real sessions.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for the two runs.")] = Path(
        "runs"
    ),
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print lanes.")] = False,
    width: Width = None,
    as_json: JsonOption = False,
) -> None:
    """List the hazards of Kafka's design, or reproduce one.

    A hazard is played twice. Without its cure an invariant must be violated, and the lanes mark
    the row. With its cure (Kafka's fix, or a setting) every invariant must hold.

    \b
      isr hazards KAFKA-2729

    Exit codes: 0 reproduced and cured; 1 not reproduced, or not cured; 2 unknown: a live run was
    too late.
    """
    if name is None:
        if live:
            raise UserError("--live needs a name: isr hazards NAME --live")
        if as_json:
            print_json({"hazards": [_entry_json(one) for one in catalogue().values()]})
        else:
            _list(width)
        return
    entry = find(name)
    if live and not entry.live:
        able = ", ".join(one.name for one in catalogue().values() if one.live)
        raise UserError(f"--live: {entry.name} runs only in virtual time; on a real server: {able}")
    zookeeper = EMBEDDED if live else SIMULATED
    console = Console(stderr=as_json, highlight=False, width=width, soft_wrap=True)
    also = f" ({', '.join(entry.also)})" if entry.also else ""
    console.print(Text.assemble((f"{entry.name}{also}: {entry.title}", "bold")))
    fixed = f"; fixed in {entry.fixed}" if entry.fixed else "; never fixed"
    console.print(f"{entry.versions}{fixed}\n")
    console.print(Text(entry.story), soft_wrap=False)
    console.print(f"\nseed {entry.seed:#x}, {len(actions_of(entry.scenario()))} steps")
    record = seen().get(entry.name)
    if record is not None:
        console.print(f"schedule       {record.length}")
    sides = {}
    for cured in (False, True):
        with interrupt_on_signals(), ProgressLine(total=entry.scenario().duration_us) as line:
            play = partial(
                play_side,
                entry,
                cured=cured,
                zookeeper=zookeeper,
                base=out,
                on_progress=line.show_run,
            )
            sides[cured] = play_or_explain(play)
        _show(console, entry, sides[cured], cured=cured, lanes=not quiet, width=width)
    verdicts = [side.verdict for side in sides.values()]
    # A hazard that was not reproduced or cured outweighs a live run that was late.
    verdict = next(word for word in ("not held", "unknown", "held") if word in verdicts)
    console.print(Text.assemble("verdict        ", (verdict, "bold")))
    repeat = shlex.join(["isr", "hazards", entry.name, *["--live"] * live])
    console.print(f"repeat it      {repeat}")
    if as_json:
        # `violations` and `expectations` as in summary.json.
        of_side = {
            name: {
                "verdict": side.verdict,
                "violations": [_without_hazard(one) for one in side.violations],
                "expectations": side.expectations,
                "wall_ms": side.wall_ms,
                "events": len(side.events),
                "run_directory": str(side.directory),
            }
            for name, side in (("broken", sides[False]), ("cured", sides[True]))
        }
        print_json({**_entry_json(entry), "seed": entry.seed, "verdict": verdict, **of_side})
    raise typer.Exit(EXIT_CODES[verdict])


def _without_hazard(one: Broken) -> Broken:
    """The command is about one hazard, so violations do not repeat its name."""
    return msgspec.structs.replace(one, hazard="")


def _show(
    console: Console, entry: Entry, side: Side, *, cured: bool, lanes: bool, width: int | None
) -> None:
    """Show the outcome of one of the two plays."""
    with_what = f"with {shlex.join(entry.cure.words)}" if cured else "as it was"
    console.print(Text(f"\n{with_what}", "bold"))
    if lanes and not cured:
        from emulator.view.lanes import render_lanes

        marked = marks(side)
        first, last = span_us(side, marked)
        console.print(
            render_lanes(
                side.events,
                partition=next(
                    (one.topic_partition for one in side.matching if one.partition), None
                ),
                from_us=max(0, first - AROUND_US),
                to_us=last + AROUND_US,
                marked=marked,
                width=width,
            )
        )
    if not cured and not side.is_as_expected:
        missing = sorted(set(entry.violates) - {one.invariant for one in side.matching})
        console.print(Text(f"NOT REPRODUCED   {', '.join(missing)} held", "bold red"))
    # Each invariant once, with its first violation.
    broken: dict[str, Broken] = {}
    for one in side.matching:
        broken.setdefault(one.invariant, _without_hazard(one))
    print_violations(console, list(broken.values()), list(side.events))
    for judged in side.expectations:
        if not judged.held:
            line = Text.assemble(("NOT HELD", "bold red"), f"  {judged.text}   {judged.seen}")
            console.print(line)
    if cured and side.is_as_expected:
        console.print(Text.assemble(("held    ", "green"), "  no invariant is violated"))
    if cured and entry.cure.explanation:
        console.print(f"          {entry.cure.explanation}")
    if side.late:
        console.print("          unknown: the machine was too slow for a live run")
    console.print(f"run directory  {side.directory}")


def _list(width: int | None) -> None:
    """List each hazard with the results and the commit of the last `make hazards`."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("hazard", "seen", "cure", "live", "commit"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what goes wrong")
    for entry in catalogue().values():
        one = seen().get(entry.name)
        live = "can be" if entry.live else ""
        if one is None:
            state = [Text("not tried", "yellow"), Text(), Text(live), Text()]
        else:
            if entry.live and one.live is not None:
                live = "yes" if one.live.seen else "NO"
            state = [
                Text("yes") if one.reproduced else Text("NO", "bold red"),
                Text("holds") if one.cured else Text("FAILS", "bold red"),
                Text(live),
                Text(one.commit),
            ]
        table.add_row(entry.name, *state, entry.title)
    Console(highlight=False, width=width).print(table)
    typer.echo("\nseen: reproduced in virtual time; cure: with it nothing breaks; live: seen on a")
    typer.echo("real ZooKeeper server, too (can be: isr hazards NAME --live tries it)")


def _entry_json(entry: Entry) -> dict[str, object]:
    """`cure`: options of `isr run`; `seen`: the results of `make hazards` (null: not tried)."""
    names = ("name", "title", "also", "facts", "versions", "fixed", "violates")
    return {
        **{name: getattr(entry, name) for name in names},
        "cure": entry.cure.words,
        "live": entry.live,
        "steps": len(actions_of(entry.scenario())),
        "file": str(entry.path),
        "seen": seen().get(entry.name),
    }
