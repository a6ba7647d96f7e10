"""Two traces that should be one, for people and for programs: the same, or where they part."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace.difference import Compared, TraceDifference
from emulator.trace.reader import decode_event
from emulator.view.telling import fields_of

Names = tuple[str, str]


def difference_lines(compared: Compared, names: Names) -> Iterator[str]:
    """What differs, with the events before it; `names` are what the two traces are called."""
    found = compared.difference
    if found is None:
        return
    yield f"first difference: event {found.event:,}{_when(found)}"
    for text in found.before:
        yield f"  {'both':<10}{_told(text, found)}"
    for name, side in zip(names, (found.first, found.second), strict=True):
        told = "(nothing: its trace ends here)" if side is None else _told(side, found)
        yield f"  {name:<10}{told}"


def difference_json(compared: Compared, names: Names) -> dict[str, object]:
    """`same`, `events` (that are the same, from the start), `first_difference`: `event`, `at_ms`,
    `before`, and each side under its name (null: that trace ends there)."""
    found = compared.difference
    about: dict[str, object] = {"same": found is None, "events": compared.events}
    if found is None:
        return about | {"first_difference": None}
    sides = dict(zip(names, map(_raw, (found.first, found.second)), strict=True))
    before = [_raw(text) for text in found.before]
    when = {"event": found.event, "at_ms": _at_ms(found), "before": before}
    return about | {"first_difference": when | sides}


def _raw(text: str | None) -> object:
    return None if text is None else msgspec.Raw(text.encode())


def _at_ms(found: TraceDifference) -> float | None:
    """Since the cluster was up; None before that."""
    side = found.first or found.second
    if side is None or found.up_us is None:
        return None
    return float((msgspec.json.decode(side)["t"] - found.up_us) / 1000)


def _when(found: TraceDifference) -> str:
    at_ms = _at_ms(found)
    return ", before the cluster was up" if at_ms is None else f", at {at_ms / 1000:.3f} s"


def _told(text: str, found: TraceDifference) -> str:
    """`7.243 s  broker 1  kafka-scheduler-3  isr_update_started  partition orders-0, ...`"""
    event = decode_event(text.encode())
    since_us = event.t - (found.up_us or 0)
    who = f"broker {event.broker}" if event.broker else "world"
    cause = f"because of {event.cause:,}" if event.cause >= 0 else ""
    parts = (f"{since_us / 1e6:.6f} s", who, event.thread, event.kind, fields_of(event), cause)
    return "  ".join(part for part in parts if part)
