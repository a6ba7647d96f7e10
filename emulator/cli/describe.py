"""`isr describe RUN --at 12.5s`: every partition at one moment, as each of its members has it."""

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
        typer.Option(metavar="TIME", help="12.5s since the cluster was up; default: the end."),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this partition: orders-0.")
    ] = None,
    fetchers: Annotated[
        bool, typer.Option("--fetchers", help="Fetcher threads, and the partitions of each.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as one JSON object.")] = False,
) -> None:
    """Describe every partition at one moment of a run.

    In the manner of kafka-topics --describe: AR, ISR, OSR, leader, epochs and zkVersion as
    ZooKeeper has them, as whoever is (or thinks to be) controller has them, as the leader has them,
    and as each broker's metadata shows them; each replica's own LEO and HW beside what its leader
    thinks. What differs is marked.
    """
    stored = open_run(find_run(run))
    timeline = Timeline(stored.events)
    # A run goes on after its last event; one that was killed has no summary that says how long.
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
