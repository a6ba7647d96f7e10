"""What `isr conform` says of one recording: the seven points, the first difference, the delays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from emulator.conformance.compare import Difference, Timing, Verdict

POINTS = {
    1: "state znodes and who wrote them",
    2: "notifications and their deletion",
    3: "controllers, registrations, sessions",
    4: "control requests at each broker",
    5: "decisions of leaders, truncations",
    6: "ZooKeeper requests by thread",
    7: "what producers were told",
}
_COLUMNS = 64


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """All of it, line by line."""
    word = "matched" if verdict.matched else "NOT matched"
    agree = f"{verdict.seeds_agreeing} of {verdict.seeds} agree in points 1, 3 and 4"
    yield f"{verdict.recording}: {word}; {agree}"
    for point, text in POINTS.items():
        equal = f"{verdict.agreeing_by_point[point]} of {verdict.seeds} equal"
        missed = "" if verdict.points[point] else "   NOT matched"
        yield f"  point {point}  {text:<38}{equal:>18}{missed}"
    yield from _differences(verdict)
    yield from _delays(verdict.timings)


def _differences(verdict: Verdict) -> Iterator[str]:
    found = [d for d in verdict.nearest_differences.values() if d is not None]
    if not found:
        return
    yield f"  nearest: {verdict.nearest_run}, which first differs in each point at"
    for difference in found:
        yield from _difference(difference)


def _difference(difference: Difference) -> Iterator[str]:
    yield f"    point {difference.point}, {difference.key}, entry {difference.entry}"
    for side in ("before", "real", "run"):
        entries: Sequence[object] = getattr(difference, side)
        label = "both" if side == "before" else side
        for text in [said(entry) for entry in entries] or ["(nothing)"] * (side != "before"):
            yield f"      {label:<6}{text}"
            label = ""


def said(entry: Any) -> str:
    """An entry of a lane in one line: the fields that it has."""
    if isinstance(entry, str):
        return entry
    names: tuple[str, ...] = getattr(entry, "_fields", ())
    if not names:
        return " ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)
    shown = ((name, getattr(entry, name)) for name in names)
    return "  ".join(
        str(value) if name in ("kind", "op", "said", "path") else f"{name} {_short(value)}"
        for name, value in shown
        if value is not None and value != ()
    )


def _short(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(_short(part) for part in value)
    return str(value).replace(" ", "")


def _delays(timings: Sequence[Timing]) -> Iterator[str]:
    if not timings:
        return
    outside = sum(not timing.inside for timing in timings)
    head = f"delays, ms: {len(timings)}, {outside or 'none'} outside"
    yield f"  {head:<{_COLUMNS}}{'recorded':>9}{'min':>8}{'median':>8}{'max':>8}"
    for timing in timings:
        yield _delay(timing)


def _delay(timing: Timing) -> str:
    figures = "".join(
        f"{'-' if ms is None else ms:>8}" for ms in (timing.min_ms, timing.p50_ms, timing.max_ms)
    )
    mark = "" if timing.inside else "   OUTSIDE"
    return f"    {timing.what:<{_COLUMNS - 2}}{timing.recorded_ms:>9}{figures}{mark}"
