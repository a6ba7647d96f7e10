"""The findings of a trace as lines: known hazards, and those that could not be judged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator

from emulator.forensics.findings import Findings
from emulator.forensics.imported import Imported, not_judged
from emulator.trace.events import ActionApplied, AnyEvent

Clock = Callable[[int], str]


def clock_of(events: Iterable[AnyEvent], imported: Imported | None) -> Clock:
    """The time of day if it is known, with the date if there are several; otherwise seconds since
    the cluster was up."""
    if imported is not None:
        began = dt.datetime.fromtimestamp(imported.began_ms / 1000, dt.UTC)
        last = began + dt.timedelta(microseconds=imported.coverage.until_us)
        day = "%m-%d " if last.date() != began.date() else ""

        def of_day(t_us: int) -> str:
            at = began + dt.timedelta(microseconds=t_us)
            return at.strftime(f"{day}%H:%M:%S.") + f"{at.microsecond // 1000:03}"

        return of_day
    up_us = next((it.t for it in events if isinstance(it, ActionApplied) and it.do == "up"), 0)
    return lambda t_us: f"{(t_us - up_us) / 1e6:.3f} s"


def span_text(from_us: int, to_us: int | None, clock: Clock) -> str:
    return f"from {clock(from_us)} to {'the end' if to_us is None else clock(to_us)}"


def diagnosis_lines(findings: Findings, clock: Clock, imported: Imported | None) -> Iterator[str]:
    """One case per line, with its events and log lines; then the hazards that were not judged."""
    for one in findings.diagnoses:
        yield f"{one.name}  {span_text(one.from_us, one.to_us, clock)}: {one.seen}; {one.ended}"
        for fact in one.facts:
            line = imported.evidence.get(fact) if imported is not None else None
            if line is not None:
                yield f"  line: {line}"
        yield f"  cure: {one.cure}"
    absent = not_judged(imported) if imported is not None else {}
    if not findings.diagnoses:
        yield "no known hazard matched" + (" of those that could be judged" if absent else "")
    for why, names in absent.items():
        yield f"not judged everywhere: {', '.join(names)} ({why})"
