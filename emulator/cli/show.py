"""`isr show RUN`: the lane table of a run that is over, or the whole of it as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts.errors import writing
from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.scenario.errors import UserError
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors as asked
from emulator.view.lanes import Lanes, render_lanes
from emulator.view.stored import NoRun, StoredRun, open_run


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    partition: Annotated[str | None, typer.Option(help="Only this partition: orders-0.")] = None,
    actor: Annotated[
        str | None, typer.Option(help="Only this actor: controller, zookeeper, clients or 2.")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="From this time on: 12.5s.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Up to this time: 20s.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only this kind of event; may be repeated.")
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Everything, each fetch and request a row.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page that needs no network.")
    ] = None,
    width: Annotated[int | None, typer.Option(help="Columns; default: the terminal's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The rows as one JSON object.")] = False,
) -> None:
    """Show a run as lanes: one column per actor, time downwards."""
    try:
        stored = open_run(find_run(run))
        lanes = _lanes(stored, partition, actor, since, until, kind or [], detail, width)
    except (NoRun, asked.NotInRun) as error:
        raise UserError(str(error)) from None
    if html is not None:
        from emulator.view.html import render_html

        page = render_html([(stored.header, stored.events)], stored.header.scenario)
        write_page(page, html, told=not as_json)
    if as_json:
        typer.echo(msgspec.json.encode(_json(stored, lanes)))
    elif html is None:
        Console(width=width, highlight=False).print(lanes)


def _lanes(
    stored: StoredRun,
    partition: str | None,
    actor: str | None,
    since: str | None,
    until: str | None,
    kinds: list[str],
    detail: bool,
    width: int | None,
) -> Lanes:
    timeline = Timeline(stored.events)
    known = {event.kind for event in stored.events}
    for kind in kinds:
        if kind not in known:
            raise asked.NotInRun(
                f"{kind}: no such event in this run; it has {', '.join(sorted(known))}"
            )
    return render_lanes(
        stored.events,
        partition=asked.partition(partition, timeline) if partition is not None else None,
        actor=asked.actor(actor, timeline) if actor is not None else None,
        kinds=kinds,
        from_us=asked.time_us(since) if since is not None else None,
        to_us=asked.time_us(until) if until is not None else None,
        detail=detail,
        width=width,
    )


def write_page(page: str, file: Path, *, told: bool) -> None:
    """Keep a page, and say so."""
    with writing(file):
        file.write_text(page, encoding="utf-8")
    if told:
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
