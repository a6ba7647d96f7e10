"""`isr report RUN`: what a cluster's control plane did, for its operator."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.cli.import_ import clock_lines
from emulator.cli.parts.options import RunArgument, print_json
from emulator.cli.show import write_page
from emulator.forensics.findings import Findings, Stale, Stuck, find
from emulator.forensics.imported import Imported, read_import
from emulator.runs.run_directory import find_run
from emulator.trace.events import ActionApplied, AnyEvent
from emulator.view.report_page import Diagnosis, ReportPage, Section, render_report
from emulator.view.stored import StoredRun, open_run

SHOWN = 200
Clock = Callable[[int], str]


def command(
    run: RunArgument,
    whole: Annotated[
        bool,
        typer.Option("--all", help=f"Show the whole time line, not only the last {SHOWN} lines."),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write an HTML page; it needs no network."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Report what happened to a cluster, and diagnose known hazards.

    Lists ISR changes, elections, controllers, stale metadata and partitions with problems at the
    end. It works for imported runs (isr import) and all others. Times of an imported run are times
    of day by the reference clock; of others, seconds since the cluster was up.

    \b
      isr report latest

    Exit codes: 0 no known hazard matched; 1 one did.
    """
    directory = find_run(run)
    stored = open_run(directory)
    imported = read_import(directory)
    findings = find(stored.events)
    clock = _clock(stored.events, imported)
    timeline = findings.timeline if whole else findings.timeline[-SHOWN:]
    left_out = len(findings.timeline) - len(timeline)
    # Where an imported run comes from, and what is therefore not known.
    origin: list[str] = []
    if imported is not None:
        unknown = (f"unknown: {what}" for what in imported.unknown)
        origin = [f"imported from {imported.folder}", *clock_lines(imported), *unknown]
    if html is not None:
        note = f"{left_out} earlier lines are left out (--all)." if left_out else ""
        moments: list[tuple[str, ...]] = [(clock(one.t_us), one.what, one.text) for one in timeline]
        time_line = Section("Time line", "Nothing.", ("when", "what", ""), moments, note)
        page = _page(stored, imported, findings, clock, origin, time_line)
        write_page(render_report(page, stored), html, reported=not as_json)
    if as_json:
        # `imported`: import.json, null for other runs; times in microseconds of the trace.
        about = {"run_directory": str(stored.directory), "imported": imported}
        print_json(about | msgspec.structs.asdict(findings))
    elif html is None:
        heading = "time line" + (f" ({left_out} earlier lines: --all)" if left_out else "")
        lines = [*origin, "", heading]
        lines += [f"  {clock(one.t_us)}  {one.what:<10}  {one.text}" for one in timeline]
        for title, items in _sections(findings, clock):
            lines += ["", title if items else f"{title}: none", *items]
        console = Console(highlight=False, soft_wrap=True)
        for line in lines:
            console.print(line, markup=False)
    raise typer.Exit(1 if findings.diagnoses else 0)


def _clock(events: list[AnyEvent], imported: Imported | None) -> Clock:
    """Time of day where it is known."""
    if imported is not None:
        began = dt.datetime.fromtimestamp(imported.began_ms / 1000, dt.UTC)

        def of_day(t_us: int) -> str:
            at = began + dt.timedelta(microseconds=t_us)
            return at.strftime("%H:%M:%S.") + f"{at.microsecond // 1000:03}"

        return of_day
    up_us = next((it.t for it in events if isinstance(it, ActionApplied) and it.do == "up"), 0)
    return lambda t_us: f"{(t_us - up_us) / 1e6:.3f} s"


def _page(
    stored: StoredRun,
    imported: Imported | None,
    findings: Findings,
    clock: Clock,
    origin: list[str],
    time_line: Section,
) -> ReportPage:
    brokers = imported.brokers.items() if imported else ()
    return ReportPage(
        title=f"report on {imported.folder if imported else stored.header.scenario}",
        facts=[f"broker {n}: Kafka {one.version or '?'}" for n, one in brokers],
        about=[" ".join(line.split()) for line in origin],
        diagnoses=[
            Diagnosis(
                one.name, _span(one.from_us, one.to_us, clock), f"{one.seen}; {one.ended}", one.cure
            )
            for one in findings.diagnoses
        ],
        sections=[
            Section(
                "At the end",
                "Every partition has a leader, and all its replicas in sync.",
                ("partition", "what", "leader", "since"),
                [
                    (
                        str(one.partition),
                        _lacks(one),
                        str(one.leader) if one.leader >= 0 else "none",
                        clock(one.since_us),
                    )
                    for one in findings.stuck
                ],
            ),
            Section(
                "Stale metadata, 1 s and longer",
                "None.",
                ("broker", "partition", "showed", "there was", "when"),
                [_stale_cells(one, clock) for one in findings.stale],
            ),
            time_line,
        ],
    )


def _sections(findings: Findings, clock: Clock) -> Iterator[tuple[str, list[str]]]:
    """What stands below the time line: a title, and its lines."""
    cells = [_stale_cells(one, clock) for one in findings.stale]
    yield (
        "stale metadata, 1 s and longer",
        [
            f"  broker {broker} showed {shown} of {partition} {when}; ZooKeeper had {newest}"
            for broker, partition, shown, newest, when in cells
        ],
    )
    yield (
        "at the end",
        [
            f"  {one.partition}: {_lacks(one)}, leader {one.leader}, since {clock(one.since_us)}"
            for one in findings.stuck
        ],
    )
    yield (
        "diagnosis",
        [
            f"  {one.name}  {_span(one.from_us, one.to_us, clock)}: {one.seen}; {one.ended}\n"
            f"  cure: {one.cure}"
            for one in findings.diagnoses
        ],
    )


def _span(from_us: int, to_us: int | None, clock: Clock) -> str:
    return f"from {clock(from_us)} to {'the end' if to_us is None else clock(to_us)}"


def _stale_cells(one: Stale, clock: Clock) -> tuple[str, str, str, str, str]:
    lasted = "" if one.to_us is None else f" ({(one.to_us - one.from_us) / 1e6:.1f} s)"
    when = _span(one.from_us, one.to_us, clock) + lasted
    shown = "nothing" if one.shown < 0 else f"v{one.shown}"
    return (str(one.broker), str(one.partition), shown, f"v{one.newest}", when)


def _lacks(one: Stuck) -> str:
    isr = ",".join(map(str, one.isr))
    return f"ISR [{isr}] of {len(one.replicas)} replicas" if one.leader >= 0 else "no leader"
