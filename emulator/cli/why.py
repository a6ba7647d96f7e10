"""`isr why RUN orders-0@v8`: the explanation of one ISR change."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from emulator.cli.parts.options import RunArgument, print_json
from emulator.runs.run_directory import find_run
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors
from emulator.view.stored import open_run
from emulator.view.why import explain_version
from emulator.view.why_text import render_why


def command(
    run: RunArgument,
    change: Annotated[
        str, typer.Argument(metavar="CHANGE", help="Partition and version, such as orders-0@v8.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the facts as one JSON object.")
    ] = False,
) -> None:
    """Explain one ISR change: its cause, the rule that applied, and how the change spread.

    \b
      isr why latest orders-0@v1
    """
    stored = open_run(find_run(run))
    timeline = Timeline(stored.events)
    partition, version = selectors.change(change, timeline)
    story = explain_version(timeline, stored.header, partition, version)
    if as_json:
        print_json(story)
    else:
        Console(highlight=False).print(render_why(story))
