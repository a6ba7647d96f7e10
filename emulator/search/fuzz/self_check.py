"""What has to be noticed before `isr fuzz` may say that nothing is wrong.

A canary is a hazard of the catalogue whose own file says that it is one: played without its cure,
through the same code that plays, judges and explains a random world, it has to end as a failure of
ours, with every invariant that it breaks. One that is not noticed says that the checkers are blind,
and that a clean result means nothing. Knows no hazard by name.
"""

from __future__ import annotations

import msgspec

from emulator.hazards.entry import Entry, catalogue
from emulator.search.fuzz.trial import try_world


class SelfCheck(msgspec.Struct, frozen=True):
    """One that was played: the invariants that had to break, and those that nobody noticed."""

    name: str
    breaks: tuple[str, ...]
    missed: tuple[str, ...]


def self_checks() -> tuple[Entry, ...]:
    """The hazards whose files say that they are one."""
    return tuple(entry for entry in catalogue().values() if entry.canary)


def run_self_checks() -> tuple[SelfCheck, ...]:
    """Each, to its end."""
    checked = []
    for entry in self_checks():
        scenario = entry.scenario()
        trial = try_world(scenario.text, entry.seed, healed_at_us=scenario.duration_us)
        missed = set(entry.violates) - {failure.invariant for failure in trial.ours}
        checked.append(SelfCheck(entry.name, entry.violates, tuple(sorted(missed))))
    return tuple(checked)
