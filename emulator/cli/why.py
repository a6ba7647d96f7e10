"""`isr why RUN orders-0@v8`: the story of one ISR change."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.scenario.errors import UserError
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors as asked
from emulator.view.stored import NoRun, open_run
from emulator.view.why import NoSuchChange, tell_why
from emulator.view.why import as_json as story_json
from emulator.view.why_text import render_why


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    change: Annotated[
        str, typer.Argument(metavar="CHANGE", help="Partition and version: orders-0@v8.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="All its facts as one JSON object.")
    ] = False,
) -> None:
    """Tell the story of one ISR change: what was seen, which rule fired, how it became known."""
    try:
        stored = open_run(find_run(run))
        timeline = Timeline(stored.events)
        partition, version = asked.change(change, timeline)
        story = tell_why(timeline, stored.header, partition, version)
    except (NoRun, asked.NotInRun, NoSuchChange) as error:
        raise UserError(str(error)) from None
    if as_json:
        typer.echo(msgspec.json.encode(story_json(story)))
    else:
        Console(highlight=False).print(render_why(story))
