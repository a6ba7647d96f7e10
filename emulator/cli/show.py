"""`isr show RUN`: a finished run as lanes in the terminal, or as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from emulator.cli.parts.errors import writing
from emulator.cli.parts.options import RunArgument, Width, print_json
from emulator.runs.run_directory import find_run
from emulator.scenario.errors import UserError
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors
from emulator.view.lanes import Lanes, render_lanes
from emulator.view.stored import StoredRun, open_run


def command(
    run: RunArgument,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this partition, such as orders-0.")
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only this actor: controller, zookeeper, clients or a broker's id."
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this time on, such as 12.5s.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this time, such as 20s.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Only this kind of event; may be repeated."),
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Every event, with one row per fetch and request.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page; it needs no network.")
    ] = None,
    width: Width = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the rows as one JSON object.")
    ] = False,
) -> None:
    """Show a run as lanes: one column per actor, time downwards.

    \b
      isr show latest --partition orders-0 --from 4s --to 8s
    """
    stored = open_run(find_run(run))
    timeline = Timeline(stored.events)
    known = {event.kind for event in stored.events}
    for name in kind or ():
        if name not in known:
            kinds = ", ".join(sorted(known))
            raise UserError(f"--kind {name}: no such event in this run; it has {kinds}")
    from_us = selectors.time_us(since) if since is not None else None
    to_us = selectors.time_us(until) if until is not None else None
    if from_us is not None and to_us is not None and to_us < from_us:
        raise UserError(f"--from {since} --to {until}: ends before it begins")
    lanes = render_lanes(
        stored.events,
        partition=selectors.partition(partition, timeline) if partition is not None else None,
        actor=selectors.actor(actor, timeline) if actor is not None else None,
        kinds=kind or (),
        from_us=from_us,
        to_us=to_us,
        detail=detail,
        width=width,
    )
    if html is not None:
        from emulator.view.html import render_html

        page = render_html([(stored.header, stored.events)], stored.header.scenario)
        write_page(page, html, reported=not as_json)
    if as_json:
        print_json(_json(stored, lanes))
    elif html is None:
        Console(width=width, highlight=False).print(lanes)


def write_page(page: str, file: Path, *, reported: bool) -> None:
    """Write a page and report its size."""
    with writing(file):
        file.write_text(page, encoding="utf-8")
    if reported:
        typer.echo(f"{file}: {file.stat().st_size / 1e6:.1f} MB, open it in a browser")


def _json(stored: StoredRun, lanes: Lanes) -> dict[str, object]:
    """`scenario`, `seed`, `lanes`, and `rows`: `at_ms`, `to_ms`, `kind`, `cells`, `source`,
    `targets`, `seqs`.
    """
    origin = lanes.timeline.origin_us
    rows = [
        {
            "at_ms": (row.from_us - origin) / 1000,
            "to_ms": (row.to_us - origin) / 1000,
            "kind": row.kind,
            "banner": row.banner,
            "cells": {
                lane: {"headline": cell.headline, "numbers": cell.numbers}
                for lane, cell in row.cells.items()
            },
            "source": row.source,
            "targets": row.targets,
            "seqs": row.seqs,
        }
        for row in lanes.rows
    ]
    header = stored.header
    return {"scenario": header.scenario, "seed": header.seed, "lanes": lanes.lanes, "rows": rows}
