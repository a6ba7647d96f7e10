"""What came of each recording, as a page: `docs/fidelity.md` is made of this and of nothing else.

Owns the page. It must not know how anything was played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from emulator.conformance.compare import Timing, Verdict
from emulator.conformance.distance import NEAR_ENOUGH
from emulator.conformance.repeatability import Near
from emulator.search.guided.guided import Guided

WIDTH = 120


@dataclass(frozen=True)
class Row:
    """One recording."""

    name: str
    blind: Verdict
    guided: Guided | None
    """None: blind seeds matched it, and nobody searched."""

    @property
    def verdict(self) -> Verdict:
        """The one that its delays are taken from."""
        found = self.guided is not None and self.guided.found
        return self.guided.verdict if found and self.guided else self.blind

    @property
    def matched(self) -> bool:
        return self.verdict.matched


@dataclass(frozen=True)
class Scope:
    """What the figures are figures of."""

    seeds: int
    most: int
    budget_s: float
    jobs: int
    latencies: int
    commit: str
    load: float


def page(scope: Scope, rows: Sequence[Row], scripts: Sequence[tuple[str, Near]]) -> str:
    return "\n".join([*_head(scope), *_matches(rows), *_scripts(scripts), *_delays(rows)]) + "\n"


def _head(scope: Scope) -> Iterator[str]:
    yield "# Fidelity"
    yield ""
    yield from wrap(
        f"Made by `make fidelity` from plays of ours in virtual time, at commit {scope.commit} with"
        f" latencies of version {scope.latencies}: {scope.seeds} blind seeds for each recording;"
        " where these do not match it, and for every run of a script that was recorded several"
        f" times, a guided search of at most {scope.budget_s:.0f} s with {scope.jobs} processes;"
        " where that finds no match of a recording that is alone, twice as many seeds, again and"
        f" again, up to {scope.most} (load of the machine at the end: {scope.load:.0f}). *Matched*"
        " is what the judge says (`isr conform`); *agree*: in points 1, 3 and 4 together.",
        WIDTH,
    )


def _matches(rows: Sequence[Row]) -> Iterator[str]:
    yield from ("", "## Recordings", "")
    yield "| recording | blind seeds that agree | matched by | draws, seconds, runs of the match |"
    yield "|---|--:|---|--:|"
    for row in rows:
        blind = f"{row.blind.seeds_agreeing} of {row.blind.seeds}"
        yield f"| {row.name} | {blind} | {_how(row)} | {_effort(row.guided)} |"
    if missed := [row for row in rows if not row.matched]:
        yield from ("", "Not matched, and why (what decides it: [limits](limits.md)):", "")
        for row in missed:
            yield f"- `{row.name}`: {'; '.join(_reasons(row))}."


def _how(row: Row) -> str:
    by_seeds = "blind seeds" if row.blind.matched else ""
    by_search = "guided" if row.guided and row.guided.found and row.guided.verdict.matched else ""
    return " and ".join(filter(None, (by_seeds, by_search))) or "**not matched**"


def _effort(guided: Guided | None) -> str:
    if guided is None:
        return ""
    runs = f", {len(guided.choices.runs)}" if guided.found else ""
    return f"{guided.progress.total}, {guided.progress.seconds:.0f} s{runs}"


def _reasons(row: Row) -> Iterator[str]:
    """Of the nearest blind run, or of the match whose delays are outside."""
    verdict = row.verdict
    yield f"{verdict.seeds_agreeing} of {verdict.seeds} runs agree"
    missed = [str(point) for point, fine in verdict.points.items() if not fine]
    if missed:
        yield f"points {', '.join(missed)} equal in none"
    if first := verdict.first_difference:
        yield f"first at point {first.point}, {first.key}, entry {first.entry}"
    outside = [timing.what for timing in verdict.timings if not timing.inside]
    if outside:
        yield f"{len(outside)} of {len(verdict.timings)} delays outside, as {outside[0]}"
    if row.guided and not row.guided.found:
        progress = row.guided.progress
        yield f"the search came to stretch {progress.segment} of {progress.segments}"


def _scripts(scripts: Sequence[tuple[str, Near]]) -> Iterator[str]:
    if not scripts:
        return
    yield from ("", "## Scripts that were recorded several times", "")
    yield from wrap(
        "Median distance of real runs to each other, of blind runs of ours to real ones, and the"
        f" ratio of these (at most {NEAR_ENOUGH}); p: can a two-sample test tell ours from real"
        " runs?",
        WIDTH,
    )
    for script, near in scripts:
        yield from ("", f"`{script}`: {len(near.recordings)} real runs, {near.runs} of ours,")
        yield f"p = {near.distance.p:.3f}"
        yield from ("", "| point | real to real | ours to real | ratio |", "|---|--:|--:|--:|")
        for point, medians in near.distance.points.items():
            real, run = medians.real_to_real, medians.run_to_real
            ratio = "-" if medians.ratio is None else f"{medians.ratio:.2f}"
            mark = "" if medians.near_enough else " **too far**"
            yield f"| {point} | {real:.3f} | {run:.3f} | {ratio}{mark} |"


def _delays(rows: Sequence[Row]) -> Iterator[str]:
    yield from ("", "## Delays", "")
    yield from wrap(
        "In milliseconds: recorded, and the least, the median and the longest of our runs (of those"
        " that agree, if there are twenty; of a guided match it and its reruns with other"
        " latencies).",
        WIDTH,
    )
    for row in rows:
        yield from ("", f"### {row.name}", "")
        yield "| what | recorded | min | median | max |"
        yield "|---|--:|--:|--:|--:|"
        yield from map(_delay, row.verdict.timings)


def _delay(timing: Timing) -> str:
    figures = (timing.recorded_ms, timing.min_ms, timing.p50_ms, timing.max_ms)
    shown = " | ".join("-" if ms is None else str(ms) for ms in figures)
    mark = "" if timing.inside else " **outside**"
    return f"| {timing.what} | {shown}{mark} |"
