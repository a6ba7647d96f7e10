"""`isr describe RUN --at 12.5s`: every partition at one moment, in each view of it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from emulator.cli.parts.options import RunArgument, print_json
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors
from emulator.view.describe import as_json as description_json
from emulator.view.describe import describe
from emulator.view.describe_text import render_description
from emulator.view.stored import open_run


def command(
    run: RunArgument,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time since the cluster was up, such as 12.5s; default: the end."
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this partition, such as orders-0.")
    ] = None,
    fetchers: Annotated[
        bool, typer.Option("--fetchers", help="Also show fetcher threads and their partitions.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Describe every partition at one moment of a run.

    Like kafka-topics --describe, for each view: ZooKeeper, every broker that believes it is the
    controller, the leader, and the metadata cache of each broker. Each replica's LEO and high
    watermark stand beside its leader's view of them. Differences are marked.

    \b
      isr describe latest --at 6s --partition orders-0
    """
    stored = open_run(find_run(run))
    timeline = Timeline(stored.events)
    # A run continues after its last event; only the summary has its end, which a killed run lacks.
    first_us = timeline.events[0].t if timeline.events else 0
    ended_us = round(float(stored.summary.get("virtual_ms", 0)) * 1000)
    last_us = max(timeline.end_us - 1, ended_us)
    at_us = last_us if at is None else timeline.origin_us + selectors.time_us(at)
    if not first_us <= at_us <= last_us:
        ends = " to ".join(f"{(us - timeline.origin_us) / 1e6:.3f} s" for us in (first_us, last_us))
        raise UserError(f"--at {at}: the run goes from {ends}")
    only = selectors.partition(partition, timeline) if partition is not None else None
    description = describe(timeline.state_at(at_us), at_us, timeline.origin_us)
    if only is not None:
        description.partitions = [one for one in description.partitions if one.partition == only]
    if as_json:
        about = {"scenario": stored.header.scenario, "seed": stored.header.seed}
        print_json(about | description_json(description))
    else:
        shown = render_description(description, only=only, fetchers=fetchers)
        Console(highlight=False).print(shown)
