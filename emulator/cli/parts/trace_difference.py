"""The first difference of two traces that should be identical, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace.difference import Compared, TraceDifference
from emulator.trace.reader import decode_event
from emulator.view.event_text import fields_of

Names = tuple[str, str]


def difference_lines(compared: Compared, names: Names) -> Iterator[str]:
    """The first difference with the events before it; `names` are those of the two traces."""
    difference = compared.difference
    if difference is None:
        return
    at_ms = _at_ms(difference)
    when = ", before the cluster was up" if at_ms is None else f", at {at_ms / 1000:.3f} s"
    yield f"first difference: event {difference.event:,}{when}"
    for text in difference.before:
        yield f"  {'both':<10}{_line(text, difference)}"
    for name, side in zip(names, (difference.first, difference.second), strict=True):
        line = "(end of the trace)" if side is None else _line(side, difference)
        yield f"  {name:<10}{line}"


def difference_json(compared: Compared, names: Names) -> dict[str, object]:
    """`same`, `events` (the number of equal leading events), `first_difference`: `event`, `at_ms`,
    `before`, and each side under its name (null: that trace ends there)."""
    difference = compared.difference
    about: dict[str, object] = {"same": difference is None, "events": compared.events}
    if difference is None:
        return about | {"first_difference": None}
    sides = dict(zip(names, map(_raw, (difference.first, difference.second)), strict=True))
    before = [_raw(text) for text in difference.before]
    when = {"event": difference.event, "at_ms": _at_ms(difference), "before": before}
    return about | {"first_difference": when | sides}


def _raw(text: str | None) -> object:
    return None if text is None else msgspec.Raw(text.encode())


def _at_ms(difference: TraceDifference) -> float | None:
    """Milliseconds since the cluster was up; None before that."""
    side = difference.first or difference.second
    if side is None or difference.up_us is None:
        return None
    return float((msgspec.json.decode(side)["t"] - difference.up_us) / 1000)


def _line(text: str, difference: TraceDifference) -> str:
    """`7.243 s  broker 1  kafka-scheduler-3  isr_update_started  partition orders-0, ...`"""
    event = decode_event(text.encode())
    since_us = event.t - (difference.up_us or 0)
    who = f"broker {event.broker}" if event.broker else "world"
    cause = f"because of {event.cause:,}" if event.cause >= 0 else ""
    parts = (f"{since_us / 1e6:.6f} s", who, event.thread, event.kind, fields_of(event), cause)
    return "  ".join(part for part in parts if part)
