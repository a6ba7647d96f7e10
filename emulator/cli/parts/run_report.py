"""What a run shows at its end: the lane table, the figures, the expectations, where it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from emulator.runs.broken import Broken
from emulator.runs.session import Played
from emulator.runs.summary import Spread, Summary
from emulator.trace.events import AnyEvent

EXIT_CODES = {"held": 0, "not held": 1, "unknown": 2}
MARKS = {True: ("held", "green"), False: ("NOT HELD", "bold red"), None: ("unknown", "yellow")}


def report(console: Console, performed: Played, repeat: str, *, quiet: bool) -> None:
    """Print it; with `quiet` only expectations and what comes after them."""
    summary = performed.summary
    if not quiet:
        _lanes(console, performed)
        console.print(_figures(summary))
    if summary.violations:
        print_violations(console, summary.violations, performed.events)
    _expectations(console, summary)
    console.print(f"run directory  {escape(summary.run_directory)}", soft_wrap=True)
    console.print(f"repeat it      {escape(repeat)}", soft_wrap=True)


def _lanes(console: Console, performed: Played) -> None:
    from emulator.view.lanes import render_lanes

    if performed.events:
        console.print(render_lanes(performed.events))
        console.print()


def _figures(summary: Summary) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column()
    for name, text in (
        *_about_isr(summary),
        *_about_records(summary),
        *_about_failures(summary),
        *_about_run(summary),
    ):
        table.add_row(name, Text(text))
    return table


def _about_isr(s: Summary) -> list[tuple[str, str]]:
    kafka = {name.rpartition("name=")[2]: values for name, values in s.metrics.items()}
    ratio = "" if s.notifications_per_change is None else f", {s.notifications_per_change} each"
    return [
        (
            "ISR changes",
            (
                f"{s.isr_changes}: IsrShrinksPerSec {s.isr_shrinks}, IsrExpandsPerSec "
                f"{s.isr_expands}, FailedIsrUpdatesPerSec {s.failed_isr_updates}; "
                f"conflicts {'?' if s.conflicts is None else s.conflicts}"
            ),
        ),
        (
            "partitions",
            (
                f"UnderReplicatedPartitions {_now_and_max(kafka['UnderReplicatedPartitions'])}, "
                f"UnderMinIsrPartitionCount {_now_and_max(kafka['UnderMinIsrPartitionCount'])}, "
                f"below min ISR for {_seconds(s.under_min_isr_ms)}"
            ),
        ),
        (
            "fetchers",
            (
                f"MaxLag {_now_and_max(kafka['MaxLag'])} records, "
                f"MinFetchRate {kafka['MinFetchRate']['Value']} per s"
                if "MaxLag" in kafka
                else "MaxLag ?, MinFetchRate ?"
            ),
        ),
        ("notifications", f"{s.notifications} for {s.isr_changes} changes{ratio}"),
        (
            "propagation",
            (
                f"{_spread(s.propagation_ms)} from the ISR write to a broker's metadata; "
                f"never shown {s.never_shown}, not yet {s.not_yet_shown}"
            ),
        ),
        ("metadata", f"stale for {_seconds(s.stale_metadata_ms_max)} at most"),
    ]


def _about_records(s: Summary) -> list[tuple[str, str]]:
    errors = ", ".join(f"{name} {count}" for name, count in s.refused_by_error.items())
    lost = f"{'?' if s.lost is None else s.lost} lost" + (
        f", with acks=1 {s.lost_acks_1}" if s.lost_acks_1 else ""
    )
    refused = f"{s.refused} refused" + (f" ({errors})" if errors else "")
    truncated = f", {s.records_truncated} truncated" if s.records_truncated else ""
    return [("records", f"{s.acknowledged} acknowledged, {refused}, {lost}{truncated}")]


def _about_failures(s: Summary) -> list[tuple[str, str]]:
    """Nothing of a run in which nobody failed."""
    unclean = f" ({s.unclean_elections} unclean)" if s.unclean_elections else ""
    told = [
        f"leader elections {s.leader_elections}{unclean}" if s.leader_elections else "",
        f"controller elections {s.controller_elections}" if s.controller_elections > 1 else "",
        f"sessions expired {s.sessions_expired}" if s.sessions_expired else "",
        (
            f"control requests refused {s.control_requests_refused}"
            if s.control_requests_refused
            else ""
        ),
    ]
    text = ", ".join(filter(None, told))
    return [("failures", text)] if text else []


def _about_run(s: Summary) -> list[tuple[str, str]]:
    late = "" if s.zookeeper == "simulated" else f", kernel late {s.kernel_late_ms_max} ms at most"
    text = f"{_seconds(s.virtual_ms)} in {_seconds(s.wall_ms)}, {s.events} events{late}"
    return [("time", text)]


def print_violations(
    console: Console, violations: Sequence[Broken], events: Sequence[AnyEvent]
) -> None:
    """What must never be: the two events that contradict each other, and what led to the later."""
    from emulator.view.chains import Teller, headline

    teller = Teller(events)
    for one in violations:
        what, hazard = headline(one)
        mark = ("HAZARD  ", "bold yellow") if one.hazard else ("BROKEN  ", "bold red")
        text = Text.assemble(mark, f"  {what}", (hazard, "yellow"))
        console.print(text, soft_wrap=True)
        for line in teller.story(one):
            console.print(Text(f"            {line}", "dim"), soft_wrap=True)


def _expectations(console: Console, summary: Summary) -> None:
    for one in summary.expectations:
        word, style = MARKS[one.held]
        line = Text.assemble((f"{word:8}", style), f"  {one.text}", (f"   {one.seen}", "dim"))
        console.print(line, soft_wrap=True)
    console.print(Text.assemble("verdict   ", (summary.verdict, "bold"), _reason(summary)))


def _reason(summary: Summary) -> str:
    """Why a run proves nothing, whatever its expectations say."""
    if summary.interrupted:
        return ": the run was broken off"
    if summary.kernel_was_late:
        return (
            f": the kernel ran {summary.kernel_late_ms_max:.0f} ms late (in the run's time); "
            "try a smaller --time-scale, or a quieter machine"
        )
    return ""


def _now_and_max(gauge: dict[str, float]) -> str:
    return f"{gauge['Value']} (max {gauge['Max']})"


def _spread(spread: Spread) -> str:
    if spread.max is None:
        return "none"
    values = (("min", spread.min), ("median", spread.p50), ("max", spread.max))
    return ", ".join(f"{name} {value or 0:.0f} ms" for name, value in values)


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.3f} s"
