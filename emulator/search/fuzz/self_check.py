"""The self-check of `isr fuzz`: known failures that its checkers must notice.

A hazard of the catalogue takes part if its own file says so. It is played without its cure, through
the same code that plays and judges random worlds, and must violate every invariant that it
declares. If one is not detected, a clean result of `isr fuzz` means nothing. Knows no hazard by
name.
"""

from __future__ import annotations

import msgspec

from emulator.hazards.entry import Entry, catalogue
from emulator.search.fuzz.trial import try_world


class SelfCheck(msgspec.Struct, frozen=True):
    """The result for one hazard: the invariants that had to be violated, and those that were not
    detected."""

    name: str
    breaks: tuple[str, ...]
    missed: tuple[str, ...]


def self_checks() -> tuple[Entry, ...]:
    """The hazards whose files mark them for the self-check."""
    return tuple(entry for entry in catalogue().values() if entry.self_check)


def run_self_checks() -> tuple[SelfCheck, ...]:
    """Play each to its end."""
    checked = []
    for entry in self_checks():
        scenario = entry.scenario()
        trial = try_world(scenario.text, entry.seed, healed_at_us=scenario.duration_us)
        missed = set(entry.violates) - {failure.invariant for failure in trial.ours}
        checked.append(SelfCheck(entry.name, entry.violates, tuple(sorted(missed))))
    return tuple(checked)
