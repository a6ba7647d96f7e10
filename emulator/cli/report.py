"""`isr report RUN`: a report on a cluster's control plane, for its operator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from emulator.cli.import_ import clock_lines
from emulator.cli.parts.findings import Clock, clock_of, diagnosis_lines, span_text
from emulator.cli.parts.options import RunArgument, print_json
from emulator.cli.show import write_page
from emulator.forensics.findings import Findings, Stale, Stuck, find
from emulator.forensics.imported import Imported, read_import
from emulator.runs.run_directory import find_run
from emulator.view.report_page import Diagnosis, ReportPage, Section, render_report
from emulator.view.stored import StoredRun, open_run

SHOWN = 200


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
    findings = find(stored.events, imported.coverage if imported is not None else None)
    clock = clock_of(stored.events, imported)
    timeline = findings.timeline if whole else findings.timeline[-SHOWN:]
    left_out = len(findings.timeline) - len(timeline)
    # The sources of an imported run, and what is therefore unknown.
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
            lines += ["", title, *items]
        lines += ["", "diagnosis"]
        lines += [f"  {line}" for line in diagnosis_lines(findings, clock, imported)]
        console = Console(highlight=False, soft_wrap=True)
        for line in lines:
            console.print(line, markup=False)
    raise typer.Exit(1 if findings.diagnoses else 0)


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
                one.name,
                span_text(one.from_us, one.to_us, clock),
                f"{one.seen}; {one.ended}",
                one.cure,
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
    """The sections below the time line: titles and lines."""
    cells = [_stale_cells(one, clock) for one in findings.stale]
    items = [
        f"  broker {broker} showed {shown} of {partition} {when}; ZooKeeper had {newest}"
        for broker, partition, shown, newest, when in cells
    ]
    stale_known = findings.states_known and findings.metadata_known
    yield f"stale metadata, 1 s and longer{_nothing(items, stale_known)}", items
    items = [
        f"  {one.partition}: {_lacks(one)}, leader {one.leader}, since {clock(one.since_us)}"
        for one in findings.stuck
    ]
    yield f"at the end{_nothing(items, findings.states_known)}", items


def _nothing(items: list[str], is_known: bool) -> str:
    """Says "none" only if the trace could have shown something."""
    if items:
        return ""
    return ": none" if is_known else ": unknown (the trace does not tell of it)"


def _stale_cells(one: Stale, clock: Clock) -> tuple[str, str, str, str, str]:
    lasted = "" if one.to_us is None else f" ({(one.to_us - one.from_us) / 1e6:.1f} s)"
    when = span_text(one.from_us, one.to_us, clock) + lasted
    shown = "nothing" if one.shown < 0 else f"v{one.shown}"
    return (str(one.broker), str(one.partition), shown, f"v{one.newest}", when)


def _lacks(one: Stuck) -> str:
    isr = ",".join(map(str, one.isr))
    return f"ISR [{isr}] of {len(one.replicas)} replicas" if one.leader >= 0 else "no leader"
