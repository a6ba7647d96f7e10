"""Reduces a failing world: faults, clients and topics that the failure does not need are removed,
and the rest is shortened.

Owns the order of removals and the limit of attempts. Each reduced world must violate the same
invariant. For a liveness invariant the healing at the end stays: a broker that is never started is
missing in every ISR. Knows no action by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from emulator.invariants.base import invariants
from emulator.runs.minimize import Document, minimize, minimize_section
from emulator.search.fuzz.trial import try_world
from emulator.search.fuzz.worlds import healed_us, restarts, written

ATTEMPTS_MAX = 150


def shrink(text: str, seed: int, attempts: int = ATTEMPTS_MAX) -> str:
    """A smaller world that fails in the same way with the same seed; the same text if none was
    found."""

    def broken_by(text: str) -> set[str]:
        return {failure.invariant for failure in try_world(text, seed).ours}

    expected, left = broken_by(text), attempts

    def fails(world: Document) -> bool:
        nonlocal left
        if left <= 0:
            return False
        left -= 1
        return not expected.isdisjoint(broken_by(written(world)))

    world: Document = yaml.safe_load(text)
    brokers = world["cluster"]["brokers"]  # type: ignore[index]
    liveness = any(invariants()[name].liveness for name in expected & set(invariants()))
    restarted = list(restarts(brokers, healed_us(text) // 1000)) if liveness else []
    healing = [entry for entry in _entries(world, "faults") if entry in restarted]

    def healed(faults: Sequence[object]) -> Document:
        return {**world, "faults": [*faults, *healing]}

    drawn = [entry for entry in _entries(world, "faults") if entry not in restarted]
    world = healed(minimize(drawn, lambda faults: fails(healed(faults))))
    world = minimize_section(world, "workload", fails)
    topics = world["topics"]
    assert isinstance(topics, dict)
    for topic in list(topics):
        fewer = {name: value for name, value in topics.items() if name != topic}
        if fails({**world, "topics": fewer}):
            topics = fewer
            world = {**world, "topics": topics}
    return written(world)


def _entries(world: Document, section: str) -> list[object]:
    entries = world.get(section) or []
    assert isinstance(entries, list)
    return entries
