"""The one shrinker: delta debugging of a list (Zeller and Hildebrandt 2002, ddmin).

The caller defines failure and entries: faults of a random world, choices of a schedule, lines of a
hazard's scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
Document = Mapping[str, object]
"""A scenario as a YAML document."""


def minimize(entries: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Remove as many entries as possible while it still fails: chunks of half the length, of a
    quarter, and so on, until no single entry can be removed. `fails` is never called with all
    entries; the caller has already checked that they fail."""
    size = max(1, len(entries) // 2)
    while entries:
        at, before = 0, len(entries)
        while at < len(entries):
            fewer = [*entries[:at], *entries[at + size :]]
            if fails(fewer):
                entries = fewer
            else:
                at += size
        if size == 1 and len(entries) == before:
            break
        size = max(1, size // 2)
    return entries


def minimize_section(
    document: Document, section: str, fails: Callable[[Document], bool]
) -> Document:
    """The document with a minimal list in one section that still fails."""
    entries = document.get(section) or []
    assert isinstance(entries, list)
    fewer = minimize(entries, lambda some: fails({**document, section: list(some)}))
    return {**document, section: list(fewer)}


def needless(entries: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """The entries that are each unnecessary for the failure; a minimal list has none."""
    return [entries[at] for at in range(len(entries)) if fails([*entries[:at], *entries[at + 1 :]])]
