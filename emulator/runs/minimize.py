"""The one shrinker: delta debugging of a list (Zeller and Hildebrandt 2002, ddmin).

What fails, and what an entry is, only the caller knows: faults of a random world, choices of a
schedule, lines of a hazard's scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
Document = Mapping[str, object]
"""A scenario as YAML has it."""


def minimize(entries: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leave out as many entries as possible while it still fails: pieces of half the length, of a
    quarter, ... and single ones until none can be left out by itself. `fails` is never called with
    all entries: that those fail, the caller has seen."""
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
    """The document with as few entries of one list as it still fails with."""
    entries = document.get(section) or []
    assert isinstance(entries, list)
    fewer = minimize(entries, lambda some: fails({**document, section: list(some)}))
    return {**document, section: list(fewer)}


def needless(entries: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Entries without each of which it still fails: of a minimal list, none."""
    return [entries[at] for at in range(len(entries)) if fails([*entries[:at], *entries[at + 1 :]])]
