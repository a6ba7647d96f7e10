"""The report at the end of a run: lanes, figures, expectations, and the run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from emulator.runs.broken import Broken
from emulator.runs.session import Played
from emulator.runs.summary import Summary
from emulator.trace.events import AnyEvent
from emulator.trace.on_disk import EventsOnDisk
from emulator.view.event_text import seconds

EXIT_CODES = {"held": 0, "not held": 1, "unknown": 2}
MARKS = {True: ("held", "green"), False: ("NOT HELD", "bold red"), None: ("unknown", "yellow")}


def report(console: Console, performed: Played, repeat: str, *, quiet: bool) -> None:
    """Print the report; with `quiet` only from the expectations on."""
    summary = performed.summary
    if not quiet:
        if isinstance(performed.events, EventsOnDisk):
            # A long run does not have all events in memory, which lanes need.
            shown = f"isr show {escape(summary.run_directory)}"
            console.print(f"lanes          {len(performed.events):,} events: {shown}")
        elif performed.events:
            from emulator.view.lanes import render_lanes

            console.print(render_lanes(performed.events))
            console.print()
        table = Table.grid(padding=(0, 2))
        for name, text in _figures(summary):
            table.add_row(name, Text(text))
        console.print(table)
    if summary.violations:
        print_violations(console, summary.violations, performed.events)
    if summary.expectations:
        table = Table.grid(padding=(0, 2))
        table.add_row("", Text("expected", "dim"), Text("seen", "dim"))
        for one in summary.expectations:
            word, style = MARKS[one.held]
            table.add_row(Text(f"{word:8}", style), Text(one.text), Text(one.seen, "dim"))
        console.print(table)
    # Why the verdict is unknown even if all expectations held.
    reason = ""
    if summary.interrupted:
        reason = ": the run was interrupted"
    elif summary.kernel_was_late:
        reason = (
            f": scheduling was delayed by up to {seconds(summary.kernel_late_ms_max)} of run time; "
            "try a smaller --time-scale, or a machine with less load"
        )
    console.print(Text.assemble("verdict   ", (summary.verdict, "bold"), reason))
    console.print(f"run directory  {escape(summary.run_directory)}", soft_wrap=True)
    console.print(f"repeat it      {escape(repeat)}", soft_wrap=True)


def _figures(s: Summary) -> Iterator[tuple[str, str]]:
    kafka = {name.rpartition("name=")[2]: values for name, values in s.metrics.items()}
    yield (
        "ISR changes",
        (
            f"{s.isr_changes}: IsrShrinksPerSec {s.isr_shrinks}, IsrExpandsPerSec {s.isr_expands},"
            f" FailedIsrUpdatesPerSec {s.failed_isr_updates}; conflicts"
            f" {'?' if s.conflicts is None else s.conflicts}"
        ),
    )
    yield (
        "partitions",
        (
            f"UnderReplicatedPartitions {_now_and_max(kafka['UnderReplicatedPartitions'])},"
            f" UnderMinIsrPartitionCount {_now_and_max(kafka['UnderMinIsrPartitionCount'])},"
            f" below min ISR for {seconds(s.under_min_isr_ms)}"
        ),
    )
    fetchers = "MaxLag ?, MinFetchRate ?"  # unknown for a real Kafka
    if "MaxLag" in kafka:
        rate = kafka["MinFetchRate"]["Value"]
        fetchers = f"MaxLag {_now_and_max(kafka['MaxLag'])} records, MinFetchRate {rate} per s"
    yield "fetchers", fetchers
    ratio = "" if s.notifications_per_change is None else f", {s.notifications_per_change} each"
    yield "notifications", f"{s.notifications} for {s.isr_changes} changes{ratio}"
    times = s.propagation_ms
    spread = "none"
    if times.max is not None:
        values = (("min", times.min), ("median", times.p50), ("max", times.max))
        spread = ", ".join(f"{name} {value or 0:.0f} ms" for name, value in values)
    yield (
        "propagation",
        (
            f"{spread} from the ISR write to a broker's metadata; never shown {s.never_shown},"
            f" not yet {s.not_yet_shown}"
        ),
    )
    yield "metadata", f"stale for {seconds(s.stale_metadata_ms_max)} at most"

    errors = ", ".join(f"{name} {count}" for name, count in s.refused_by_error.items())
    refused = f"{s.refused} refused" + (f" ({errors})" if errors else "")
    lost = f"{'?' if s.lost is None else s.lost} lost"
    lost += f", with acks=1 {s.lost_acks_1}" if s.lost_acks_1 else ""
    truncated = f", {s.records_truncated} truncated" if s.records_truncated else ""
    yield "records", f"{s.acknowledged} acknowledged, {refused}, {lost}{truncated}"

    failures = []
    if s.leader_elections:
        unclean = f" ({s.unclean_elections} unclean)" if s.unclean_elections else ""
        failures.append(f"leader elections {s.leader_elections}{unclean}")
    if s.controller_elections > 1:
        failures.append(f"controller elections {s.controller_elections}")
    if s.sessions_expired:
        failures.append(f"sessions expired {s.sessions_expired}")
    if s.control_requests_refused:
        failures.append(f"control requests refused {s.control_requests_refused}")
    if failures:
        yield "failures", ", ".join(failures)

    late = (
        ""
        if s.zookeeper == "simulated"
        else f"; scheduling delay at most {seconds(s.kernel_late_ms_max)}"
    )
    yield (
        "time",
        f"{seconds(s.virtual_ms)} played in {seconds(s.wall_ms)}, {s.events:,} events{late}",
    )


def print_violations(
    console: Console, violations: Sequence[Broken], events: Sequence[AnyEvent]
) -> None:
    """Print each violation: the two contradicting events, and the causes of the later one."""
    from emulator.view.chains import EventDescriber, headline

    describer = EventDescriber(events)
    for one in violations:
        what, hazard = headline(one)
        mark = ("HAZARD  ", "bold yellow") if one.hazard else ("BROKEN  ", "bold red")
        text = Text.assemble(mark, f"  {what}", (hazard, "yellow"))
        console.print(text, soft_wrap=True)
        for line in describer.story(one):
            console.print(Text(f"            {line}", "dim"), soft_wrap=True)


def _now_and_max(gauge: dict[str, float]) -> str:
    return f"{gauge['Value']} (max {gauge['Max']})"
