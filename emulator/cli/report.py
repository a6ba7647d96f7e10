"""`isr report RUN`: what a cluster's control plane did, for whoever operates it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from emulator.cli.import_ import clock_lines
from emulator.cli.show import write_page
from emulator.forensics.diagnoses.base import Diagnosed
from emulator.forensics.findings import Findings, Stale, Stuck, find
from emulator.forensics.imported import Imported, read_import
from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.scenario.errors import UserError
from emulator.trace.events import AnyEvent, Stimulus
from emulator.view.report_page import Found, ReportPage, Section, render_report
from emulator.view.stored import NoRun, StoredRun, open_run

SHOWN = 200
T = TypeVar("T")
Clock = Callable[[int], str]


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    whole: Annotated[
        bool, typer.Option("--all", help=f"The whole time line, not its last {SHOWN} lines.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that needs no network."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as one JSON object.")] = False,
) -> None:
    """Tell what happened to a cluster: ISR changes, elections, controllers, stale metadata, what is
    stuck, and which known hazard's pattern is seen.

    Meant for imported runs (isr import), and works on every other. Times of an imported run are the
    reference clock's time of day; of others, seconds since the cluster was up. Exit code 1 when a
    hazard is diagnosed, else 0.
    """
    try:
        directory = find_run(run)
        stored = open_run(directory)
    except NoRun as error:
        raise UserError(str(error)) from None
    imported = read_import(directory)
    found = find(stored.events)
    if html is not None:
        page = _page(stored, imported, found, _clock(stored.events, imported), whole=whole)
        write_page(render_report(page, stored), html, told=not as_json)
    if as_json:
        typer.echo(msgspec.json.encode(_json(stored, imported, found)))
    elif html is None:
        console = Console(highlight=False, soft_wrap=True)
        for line in _lines(imported, found, _clock(stored.events, imported), whole=whole):
            console.print(line, markup=False)
    raise typer.Exit(1 if found.diagnoses else 0)


def _json(stored: StoredRun, imported: Imported | None, found: Findings) -> dict[str, object]:
    """`run_directory`, `imported` (import.json, null for other runs), and the findings; times in
    microseconds of the trace."""
    about = {"run_directory": str(stored.directory), "imported": imported}
    return about | {name: getattr(found, name) for name in Findings.__struct_fields__}


def _clock(events: list[AnyEvent], imported: Imported | None) -> Clock:
    """Time of day where it is known."""
    if imported is not None:
        began = dt.datetime.fromtimestamp(imported.began_ms / 1000, dt.UTC)

        def of_day(t_us: int) -> str:
            at = began + dt.timedelta(microseconds=t_us)
            return at.strftime("%H:%M:%S.") + f"{at.microsecond // 1000:03}"

        return of_day
    up_us = next((it.t for it in events if isinstance(it, Stimulus) and it.do == "up"), 0)
    return lambda t_us: f"{(t_us - up_us) / 1e6:.3f} s"


def _page(
    stored: StoredRun, imported: Imported | None, found: Findings, clock: Clock, *, whole: bool
) -> ReportPage:
    shown = found.timeline if whole else found.timeline[-SHOWN:]
    left_out = len(found.timeline) - len(shown)
    return ReportPage(
        title=f"report on {imported.folder if imported else stored.header.scenario}",
        facts=[f"broker {n}: Kafka {one.version or '?'}" for n, one in imported.brokers.items()]
        if imported
        else [],
        about=list(_about(imported)),
        diagnoses=[
            Found(
                one.name, _span(one.from_us, one.to_us, clock), f"{one.seen}; {one.ended}", one.cure
            )
            for one in found.diagnoses
        ],
        sections=[
            Section(
                "At the end",
                "Every partition has a leader, and all its replicas in sync.",
                ("partition", "what", "leader", "since"),
                [_stuck_cells(one, clock) for one in found.stuck],
            ),
            Section(
                "Stale metadata, 1 s and longer",
                "None.",
                ("broker", "partition", "showed", "there was", "when"),
                [_stale_cells(one, clock) for one in found.stale],
            ),
            Section(
                "Time line",
                "Nothing.",
                ("when", "what", ""),
                [(clock(one.t_us), one.what, one.text) for one in shown],
                f"{left_out} earlier lines are left out (--all)." if left_out else "",
            ),
        ],
    )


def _about(imported: Imported | None) -> Iterator[str]:
    """Where it comes from, and what is therefore not known."""
    if imported is not None:
        yield f"imported from {imported.folder}"
        yield from (" ".join(line.split()) for line in clock_lines(imported))
        yield from (f"unknown: {what}" for what in imported.unknown)


def _span(from_us: int, to_us: int | None, clock: Clock) -> str:
    return f"from {clock(from_us)} to {'the end' if to_us is None else clock(to_us)}"


def _stuck_cells(one: Stuck, clock: Clock) -> tuple[str, ...]:
    leader = str(one.leader) if one.leader >= 0 else "none"
    return (str(one.partition), _lacks(one), leader, clock(one.since_us))


def _stale_cells(one: Stale, clock: Clock) -> tuple[str, ...]:
    lasted = "" if one.to_us is None else f" ({(one.to_us - one.from_us) / 1e6:.1f} s)"
    when = _span(one.from_us, one.to_us, clock) + lasted
    shown = "nothing" if one.shown < 0 else f"v{one.shown}"
    return (str(one.broker), str(one.partition), shown, f"v{one.newest}", when)


def _lacks(one: Stuck) -> str:
    isr = ",".join(map(str, one.isr))
    return f"ISR [{isr}] of {len(one.replicas)} replicas" if one.leader >= 0 else "no leader"


def _lines(
    imported: Imported | None, found: Findings, clock: Clock, *, whole: bool
) -> Iterator[str]:
    if imported is not None:
        yield f"imported from {imported.folder}"
        yield from clock_lines(imported)
        yield from (f"unknown: {what}" for what in imported.unknown)
    shown = found.timeline if whole else found.timeline[-SHOWN:]
    yield ""
    left_out = len(found.timeline) - len(shown)
    yield "time line" + (f" ({left_out} earlier lines: --all)" if left_out else "")
    yield from (f"  {clock(one.t_us)}  {one.what:<10}  {one.text}" for one in shown)
    yield from _section("stale metadata, 1 s and longer", found.stale, lambda it: _stale(it, clock))
    yield from _section("at the end", found.stuck, lambda it: _stuck(it, clock))
    yield from _section("diagnosis", found.diagnoses, lambda it: _diagnosed(it, clock))


def _section(title: str, items: list[T], tell: Callable[[T], str]) -> Iterator[str]:
    yield ""
    yield title if items else f"{title}: none"
    yield from (tell(one) for one in items)


def _stale(one: Stale, clock: Clock) -> str:
    broker, partition, shown, newest, when = _stale_cells(one, clock)
    return f"  broker {broker} showed {shown} of {partition} {when}; {newest} was there"


def _stuck(one: Stuck, clock: Clock) -> str:
    return f"  {one.partition}: {_lacks(one)}, leader {one.leader}, since {clock(one.since_us)}"


def _diagnosed(one: Diagnosed, clock: Clock) -> str:
    return (
        f"  {one.name}  {_span(one.from_us, one.to_us, clock)}: {one.seen}; {one.ended}\n"
        f"  cure: {one.cure}"
    )
