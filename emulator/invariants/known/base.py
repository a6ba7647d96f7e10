"""What a hazard is, and the registry of them.

A hazard is a failure of Kafka's design that this version has no guard against: one file in this
package with one subclass of `Hazard`. It says which invariants it breaks, and recognises its
pattern in the trace behind a violation; so a broken invariant is either a hazard by name or a fault
of ours. A pattern has to be one that only this hazard leaves: what is recognised too easily hides
our own mistakes. Nothing outside its file knows its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from emulator.invariants.base import Violation
from emulator.invariants.brokers_are_registered import UnknownBrokers
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import Guard
from emulator.registry import classes_of
from emulator.trace.events import AnyEvent, BrokerStarting, IsrUpdateStarted


class Hazard:
    """One hazard. `name` is Kafka's ticket where there is one; `breaks` the invariants it can
    break; `about` its story in a sentence."""

    name: ClassVar[str]
    about: ClassVar[str]
    breaks: ClassVar[tuple[str, ...]]

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Whether its pattern is in the trace, where the violation needs it."""
        raise AssertionError(f"{type(self).__name__} recognises nothing")


@cache
def hazards() -> tuple[Hazard, ...]:
    """All hazards; found by a scan of this package."""
    kinds = classes_of("emulator.invariants.known", Hazard)
    return tuple(sorted((kind() for kind in kinds), key=lambda h: h.name))


def recognise(violation: Violation, events: Sequence[AnyEvent]) -> str:
    """The name of the hazard behind a violation; empty: none is known, the fault is ours."""
    for hazard in hazards():
        if violation.invariant in hazard.breaks and hazard.explains(violation, events):
            return hazard.name
    return ""


def expelled(violation: Violation, events: Sequence[AnyEvent]) -> tuple[IsrUpdateStarted, int]:
    """The decision that took a broker out of an ISR, and how many records it lacked then."""
    started = events[violation.facts[1]]
    assert isinstance(started, IsrUpdateStarted)
    (leo,) = (one.leo for one in started.out_of_sync if one.replica == violation.broker)
    return started, started.leo - leo


def missing_members(violation: Violation) -> set[int]:
    """Who is missing: replicas in an ISR, brokers in metadata, or the broker that it is about."""
    match violation:
        case MissingReplicas(missing=missing):
            return set(missing)
        case UnknownBrokers(known=known, started=started):
            return set(started) - set(known)
    return {violation.broker}


def lacks(guard: Guard, at: AnyEvent, events: Sequence[AnyEvent]) -> bool:
    """Whether the version that the broker of this event ran then has no such guard. One that was
    switched for a run is not in the trace: what is broken without it is for its reader to find."""
    for event in reversed(events[: at.seq]):
        if isinstance(event, BrokerStarting) and event.broker == at.broker:
            return guard not in profiles()[event.profile].guards
    return False
