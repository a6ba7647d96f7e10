"""A failing world made small: faults, clients and topics that it fails without are left out, and
what is left lasts no longer than it must.

Owns what is left out in which order, and when it has had enough of attempts. The same invariant has
to break in each world that it keeps. It knows no action by name.
"""

from __future__ import annotations

import yaml

from emulator.runs.minimize import Document, minimize_section
from emulator.search.fuzz.trial import try_world
from emulator.search.fuzz.worlds import written

ATTEMPTS_MAX = 150
_SECTIONS = ("faults", "workload")


def shrink(text: str, seed: int, attempts: int = ATTEMPTS_MAX) -> str:
    """A smaller world that fails in the same way under the same seed; the same text if there is
    none."""

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
    for section in _SECTIONS:
        world = minimize_section(world, section, fails)
    topics = world["topics"]
    assert isinstance(topics, dict)
    for topic in list(topics):
        fewer = {name: value for name, value in topics.items() if name != topic}
        if fails({**world, "topics": fewer}):
            topics = fewer
            world = {**world, "topics": topics}
    return written(world)
