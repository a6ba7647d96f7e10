"""What a guard is, and the registry of those that there are.

A guard is an object of a module of this package; the core names the object, the command line and
scenarios its `name`. It must not know what reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from emulator.registry import modules_of


@dataclass(frozen=True, eq=False)
class Guard:
    """One fix that versions have or lack.

    `kafka` is the ticket or proposal; `since` the first release that has it; `does` a sentence with
    what happens without it; `citation` the place in the specification. `unneeded_before`: releases
    older than this lack the code that it mends, and count as having it. `removed` are settings
    (with the defaults they had) that go with it.
    """

    name: str
    kafka: str
    since: str
    does: str
    citation: str
    unneeded_before: str = ""
    removed: Mapping[str, str] = field(default_factory=dict)

    def is_in(self, release: str) -> bool:
        """Whether this release of Kafka has it."""
        before = self.unneeded_before
        return number(release) >= number(self.since) or (
            before != "" and number(release) < number(before)
        )

    def __repr__(self) -> str:
        return self.name


def number(release: str) -> tuple[int, ...]:
    """0.10.2.2 comes after 0.9."""
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
