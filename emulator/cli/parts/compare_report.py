"""The report of `isr compare`: the figures of both sides, violations, and the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from emulator.runs.comparison import Compared, Figures
from emulator.runs.summary import Quantiles
from emulator.view.compare_page import Page
from emulator.view.compare_page import Table as PageTable

TIMES = (
    ("effective_ms", "decision → effective"),
    ("controller_ms", "decision → controller's cache"),
    ("metadata_ms", "decision → a broker's metadata"),
    ("produce_ms", "record → acknowledged"),
)
COUNTS = (
    ("isr_changes", "ISR changes"),
    ("rejected_updates", "rejected updates"),
    ("cas_conflicts", "CAS conflicts"),
    ("notifications", "notifications"),
    ("alter_isr_requests", "AlterIsr requests"),
    ("update_metadata_requests", "UpdateMetadata requests"),
    ("changes_never_shown", "versions never shown, per broker"),
    ("changes_not_yet_known", "changes not yet known at the end"),
    ("sessions_expired", "sessions expired"),
    ("controller_elections", "controller elections"),
    ("leader_elections", "leader elections"),
    ("acknowledged", "records acknowledged"),
    ("refused", "records refused"),
    ("lost", "acknowledged records lost"),
)
STUCK = "partitions stuck at the end"
NEWS = frozenset({"rejected updates", "CAS conflicts", "acknowledged records lost", STUCK})
TIME_HEADS = ("milliseconds", "", "count", "p50", "p95", "p99", "max")
Row = tuple[str, str, str, str]
"""The figure's name, both sides' values, and their ratio."""


def report(console: Console, compared: Compared, directory: Path) -> None:
    """Print the tables, the violations and, last, the command that repeats the comparison."""
    sides = list(compared.paths.items())
    console.print(_table(TIME_HEADS, _time_rows(sides), 2))
    console.print()
    console.print(_table(("", *compared.paths, ""), _rows(sides), 1))
    console.print()
    for name, side in sides:
        for line in _problem_lines(name, side):
            console.print(Text(line, "bold red"), soft_wrap=True)
    if compared.broken_off:
        console.print("interrupted: the figures cover the seeds that both sides have played")
    for name, side in sides:
        if side.run_directory is not None:
            console.print(f"run of {name:9}  {escape(side.run_directory)}", soft_wrap=True)
    console.print(f"page and json     {escape(str(directory))}", soft_wrap=True)
    console.print(f"repeat it         {escape(compared.repeat)}", soft_wrap=True)


def page_of(compared: Compared, curves: Sequence[Mapping[str, Sequence[float]]]) -> Page:
    """The same report as a page; `curves`: the distributions of each side by name."""
    sides = list(compared.paths.items())
    where = "in virtual time" if compared.zookeeper == "simulated" else f"on {compared.zookeeper}"
    names = tuple(compared.paths)
    return Page(
        title=f"{compared.scenario}: {' and '.join(names)}",
        about=f"{compared.seeds} plays of each side, {where}, from seed {compared.first_seed:#x},"
        " with the same scenario, seeds and faults.",
        names=names,
        distributions={
            words: {side: of[f"{name[:-3]}_us"] for side, of in zip(names, curves, strict=True)}
            for name, words in TIMES
        },
        times=PageTable(TIME_HEADS, list(_time_rows(sides))),
        counts=PageTable(("", *names, f"{names[1]} to {names[0]}"), list(_rows(sides))),
        troubles=[line for name, side in sides for line in _problem_lines(name, side)],
        repeat=compared.repeat,
    )


def _table(heads: Sequence[str], rows: Iterable[tuple[str, ...]], words: int) -> Table:
    """The first `words` columns are text, the others numbers."""
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < words else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _time_rows(sides: Sequence[tuple[str, Figures]]) -> Iterator[tuple[str, ...]]:
    for name, words in TIMES:
        for place, (side, figures) in enumerate(sides):
            times: Quantiles = getattr(figures, name)
            cells = [number(value) for value in (times.p50, times.p95, times.p99, times.max)]
            yield "" if place else words, side, f"{times.count:,}", *cells


def _rows(sides: Sequence[tuple[str, Figures]]) -> Iterator[Row]:
    """All figures with one number per side. Rows with zero on both sides are left out, except those
    whose zero is a result."""
    for row in _every_row(sides):
        if row[0] in NEWS or any(cell not in ("0", "–") for cell in row[1:3]):
            yield row


def _every_row(sides: Sequence[tuple[str, Figures]]) -> Iterator[Row]:
    a, b = sides[0][1], sides[1][1]
    yield _row("plays", a.runs, b.runs)
    stale = [one.stale_metadata_ms for one in (a, b)]
    yield _row("metadata stale, ms a play, all brokers", stale[0]["per_run"], stale[1]["per_run"])
    yield _row("metadata stale, longest, ms", stale[0]["max"], stale[1]["max"])
    gaps = a.no_acknowledgement_ms_max, b.no_acknowledgement_ms_max
    yield _row("longest without an acknowledgement, ms", *gaps)
    for name, words in COUNTS:
        yield _row(words, a.counts.get(name, 0), b.counts.get(name, 0))
    yield _row(STUCK, a.stuck_partitions, b.stuck_partitions)
    for who in ("leader", "controller"):
        for what in ("writes", "reads", "watches", "bytes"):
            each = [side.zookeeper[who].per_change[what] for side in (a, b)]
            yield _row(f"ZooKeeper {what} per ISR change, {who}", *each)


def _row(words: str, a: float | None, b: float | None) -> Row:
    return words, number(a), number(b), ratio(a, b)


def ratio(a: float | None, b: float | None) -> str:
    """The ratio of the second to the first: `÷ 1,900`, `× 2.5`, or nothing."""
    if not a or not b or a == b:
        return ""
    return f"÷ {number(a / b)}" if a > b else f"× {number(b / a)}"


def number(value: float | None) -> str:
    """The value with three significant digits."""
    if value is None:
        return "–"
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _problem_lines(name: str, side: Figures) -> Iterator[str]:
    for partition, count in side.stuck.items():
        yield f"{name}: {partition} stuck at the end of {count} of {side.runs} plays"
    for invariant, count in side.broken_invariants.items():
        yield f"{name}: BROKEN in {count} of {side.runs} plays: {invariant}"
    for hazard, count in side.hazards.items():
        yield f"{name}: known hazard in {count} of {side.runs} plays: {hazard}"
    if side.runs_too_late:
        late = f"{side.runs_too_late} of {side.runs} plays"
        yield f"{name}: {late} unknown: the machine was too slow; try one with less load"
