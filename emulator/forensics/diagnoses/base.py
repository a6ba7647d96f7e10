"""What a diagnosis is, and the registry of them.

A diagnosis is one file in this package, named as the hazard is in the catalogue, with one subclass
of `Diagnosis`: the pattern that it leaves in a trace, and its cure. It works on facts that real
clusters log. Nothing else knows its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import ClassVar

import msgspec

from emulator.registry import classes_of
from emulator.trace.events import AnyEvent
from emulator.trace.handlers import Dispatch
from emulator.trace.values import TopicPartition


class Diagnosed(msgspec.Struct, frozen=True):
    """One case: what was seen from `from_us` to `to_us` (None: to the end), of `broker`, and the
    events that show it."""

    name: str
    broker: int
    partitions: tuple[TopicPartition, ...]
    from_us: int
    to_us: int | None
    seen: str
    ended: str
    cure: str
    facts: tuple[int, ...]


class Diagnosis:
    """One hazard's pattern."""

    cure: ClassVar[str]

    @property
    def name(self) -> str:
        """The hazard's name in the catalogue: its file is named so."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-").upper()

    def cases(self, events: Sequence[AnyEvent]) -> Iterator[Diagnosed]:
        """All cases of it in a trace."""
        raise AssertionError(f"{type(self).__name__} looks for nothing")


@cache
def diagnoses() -> tuple[Diagnosis, ...]:
    """All of them; found by a scan of this package."""
    kinds = classes_of("emulator.forensics.diagnoses", Diagnosis)
    return tuple(sorted((kind() for kind in kinds), key=lambda d: d.name))


def hear(events: Sequence[AnyEvent], *listeners: object) -> None:
    """Each listener hears each event, in the order given."""
    dispatch = Dispatch(list(listeners))
    for event in events:
        dispatch(event)


def diagnose(events: Sequence[AnyEvent]) -> list[Diagnosed]:
    """All that is seen, in order of time."""
    cases = (case for one in diagnoses() for case in one.cases(events))
    return sorted(cases, key=lambda case: (case.from_us, case.name, case.broker))
