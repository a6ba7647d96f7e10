"""What a guard is, and the registry of all guards.

A guard is an object in a module of this package. The core refers to the object; the command line
and scenarios use its `name`. A guard does not know the code that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from emulator.registry import modules_of


@dataclass(frozen=True, eq=False)
class Guard:
    """One fix that a version has or lacks.

    `kafka` is the ticket or proposal; `since` the first release that has it; `does` says what it
    does, and what happens without it; `citation` is the place in the specification.
    `unneeded_before`: older releases lack the code that the guard fixes and count as having it.
    `removed`: settings, with their old defaults, that the fix removed.
    """

    name: str
    kafka: str
    since: str
    does: str
    citation: str
    unneeded_before: str = ""
    removed: Mapping[str, str] = field(default_factory=dict)

    def is_in(self, release: str) -> bool:
        """Whether this release of Kafka has the fix."""
        before = self.unneeded_before
        return number(release) >= number(self.since) or (
            before != "" and number(release) < number(before)
        )

    def __repr__(self) -> str:
        return self.name


def number(release: str) -> tuple[int, ...]:
    """A release as numbers: 0.10.2.2 is later than 0.9."""
    return tuple(int(part) for part in release.split("."))


@cache
def guards() -> dict[str, Guard]:
    """All guards by name, oldest first."""
    values = [
        value
        for module in modules_of("emulator.kafka.profiles.guards")
        for value in vars(module).values()
        if isinstance(value, Guard)
    ]
    return {guard.name: guard for guard in sorted(values, key=lambda g: (number(g.since), g.name))}
