"""The tables of docs/zk-vs-rpc.md, and where they go in it. They must not know how anything was
played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.cli.parts.compare_report import COUNTS, NEWS, TIMES, number
from emulator.trace.percentiles import nearest_rank
from tools.paths.measured import Delays

NONE = "–"


@dataclass(frozen=True)
class Both:
    """One line: what was measured of a recording, or of the runs beside it."""

    name: str
    delays: Delays
    runs: int


def with_table(page: str, name: str, table: str) -> str:
    """The page with another table between `<!-- begin NAME -->` and `<!-- end NAME -->`."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    assert page.count(begin) == page.count(end) == 1, f"{name}: no such table in the page"
    head, _, tail = page.partition(begin)
    return f"{head}{begin}{table}{end}{tail.partition(end)[2]}"


# -- isr compare -----------------------------------------------------------------------------------


def comparison(report: dict[str, Any]) -> str:
    """One comparison: times as p50 / p95 / p99 / max in milliseconds, counts of one play."""
    names, sides = list(report["paths"]), list(report["paths"].values())
    lines = [f"`{report['repeat']}`", "", f"| ms | {' | '.join(names)} |", "|---|---:|---:|"]
    lines += [_row(words, [_times(side[key]) for side in sides]) for key, words in TIMES]
    lines += [_row(words, cells) for words, cells in _figures(sides)]
    late = max(side["kernel_late_ms_max"] for side in sides)
    if report["zookeeper"] != "simulated":
        lines += ["", f"The kernel was late by {number(late)} ms at worst."]
    return "\n".join(lines) + "\n"


def _figures(sides: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    stale = [side["stale_metadata_ms"] for side in sides]
    yield "metadata stale, all brokers, a play", [number(one["per_run"]) for one in stale]
    yield "metadata stale, longest", [number(one["max"]) for one in stale]
    gaps = [number(side["no_acknowledgement_ms_max"]) for side in sides]
    yield "longest without an acknowledgement", gaps
    for key, words in COUNTS:
        counts = [side["counts"][key] for side in sides]
        if words in NEWS or any(counts):
            each = [number(n / side["runs"]) for n, side in zip(counts, sides, strict=True)]
            yield f"{words}, a play", each
    yield "partitions stuck at the end", [number(side["stuck_partitions"]) for side in sides]
    for who in ("leader", "controller"):
        each = [side["zookeeper"][who]["per_change"] for side in sides]
        yield (
            f"ZooKeeper, {who}: writes / reads / watches / bytes per change",
            [
                " / ".join(number(one[what]) for what in ("writes", "reads", "watches", "bytes"))
                for one in each
            ],
        )


def _times(times: dict[str, float | None]) -> str:
    return " / ".join(number(times[share]) for share in ("p50", "p95", "p99", "max"))


def _row(words: str, cells: Sequence[str]) -> str:
    return f"| {words} | {' | '.join(cells)} |"


# -- recordings ------------------------------------------------------------------------------------


def delays(lines: Sequence[Both]) -> str:
    """Least / median / greatest."""
    heads = "decision → state write", "→ effective", "→ metadata of a broker", "never shown"
    rows = [_head(heads)]
    for line in lines:
        delays = line.delays
        times = [_spread(delays.written), _spread(delays.effective), _spread(delays.metadata)]
        never = f"{_each(delays.never_shown, line.runs)} of {_each(delays.changes, line.runs)}"
        rows.append(_row(line.name, [*times, never]))
    return "\n".join(rows) + "\n"


def storm(lines: Sequence[Both]) -> str:
    """From the first decision of the pass until the last partition was there."""
    rows = [_head(("last state written", "last in force", "last in metadata"))]
    for line in lines:
        delays = line.delays
        times = delays.storm_written, delays.storm_effective, delays.storm_shown
        rows.append(_row(line.name, [_range(one) for one in times]))
    return "\n".join(rows) + "\n"


def _head(heads: Sequence[str]) -> str:
    return f"| ms | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"


def _spread(times: Sequence[int]) -> str:
    if not times:
        return NONE
    ordered = sorted(times)
    return " / ".join(f"{ms:,}" for ms in (ordered[0], nearest_rank(ordered, 50), ordered[-1]))


def _range(times: Sequence[int]) -> str:
    low, high = min(times), max(times)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _each(count: int, runs: int) -> str:
    return number(round(count / runs, 1))
