"""The base class of hazards, and their registry.

A hazard is a failure of Kafka's design against which this version has no guard: one file in this
package with one subclass of `Hazard`. It declares which invariants it breaks, and recognises its
pattern in the trace behind a violation. A violation without a hazard is therefore a bug of the
emulator. A pattern must be specific: one that matches too easily hides our own bugs. Only its own
file knows a hazard's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from emulator.invariants.base import Violation
from emulator.invariants.brokers_are_registered import UnknownBrokers
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.guards.base import Guard
from emulator.registry import classes_of
from emulator.trace.events import (
    AnyEvent,
    BecomesFollower,
    BecomesLeader,
    BrokerStarting,
    ControlRequestSent,
    IsrUpdateStarted,
    LeaderAndIsr,
    LeaderAndIsrIgnored,
    MetadataCacheUpdated,
)
from emulator.trace.values import TopicPartition


class Hazard:
    """`name`: Kafka's ticket, if there is one. `breaks`: the invariants that it can violate.
    `about`: a description in one sentence."""

    name: ClassVar[str]
    about: ClassVar[str]
    breaks: ClassVar[tuple[str, ...]]

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Whether the trace contains its pattern in a place that explains the violation."""
        raise AssertionError(f"{type(self).__name__} recognises nothing")


@cache
def hazards() -> tuple[Hazard, ...]:
    """All hazards, found by a scan of this package."""
    kinds = classes_of("emulator.invariants.known", Hazard)
    return tuple(sorted((kind() for kind in kinds), key=lambda h: h.name))


def recognise(violation: Violation, events: Sequence[AnyEvent]) -> str:
    """The name of the hazard behind a violation; empty if none is known, so it is our bug."""
    for hazard in hazards():
        if violation.invariant in hazard.breaks and hazard.explains(violation, events):
            return hazard.name
    return "" if violation.follows_from is None else recognise(violation.follows_from, events)


def expelled(violation: Violation, events: Sequence[AnyEvent]) -> tuple[IsrUpdateStarted, int]:
    """The decision that removed a broker from an ISR, and how many records it lacked then."""
    started = events[violation.facts[1]]
    assert isinstance(started, IsrUpdateStarted)
    (leo,) = (one.leo for one in started.out_of_sync if one.replica == violation.broker)
    return started, started.leo - leo


def decided(update: int, events: Sequence[AnyEvent]) -> int:
    """When the controller made what an UpdateMetadata says: the request may have waited for others
    to the same broker, and arrive after a change."""
    sent = events[update].cause if update >= 0 else -1
    if sent < 0 or not isinstance(events[sent], ControlRequestSent):
        return update
    return events[sent].cause if events[sent].cause >= 0 else sent


def missing_members(violation: Violation) -> set[int]:
    """The missing brokers: ISR members, those that metadata lists wrongly, or the violation's
    broker."""
    match violation:
        case MissingReplicas(missing=missing):
            return set(missing)
        case UnknownBrokers(known=known, started=started):
            return set(started) ^ set(known)
    return {violation.broker}


def profile_of(at: AnyEvent, events: Sequence[AnyEvent]) -> Profile | None:
    """The version of this event's broker at that time; None: the trace does not have its start."""
    for event in reversed(events[: at.seq]):
        if isinstance(event, BrokerStarting) and event.broker == at.broker:
            return profiles()[event.profile]
    return None


def lacks(guard: Guard, at: AnyEvent, events: Sequence[AnyEvent]) -> bool:
    """Whether the version of this event's broker at that time lacks the guard. Guards that were
    switched for a run are not in the trace, so violations caused by them are not recognised."""
    profile = profile_of(at, events)
    return profile is not None and guard not in profile.guards


def unknown_leaders(
    partition: TopicPartition | None, events: Sequence[AnyEvent]
) -> dict[int, tuple[LeaderAndIsr, MetadataCacheUpdated | None]]:
    """The brokers that could not follow a leader because their metadata did not list it, and have
    had no role since: what they received, and where their metadata came from. Such a broker only
    logs an error (ReplicaManager.scala@2.6.3 makeFollowers)."""
    metadata = dict[int, MetadataCacheUpdated]()
    unable = dict[int, tuple[LeaderAndIsr, MetadataCacheUpdated | None]]()
    before = unable
    for event in events:
        match event:
            case BrokerStarting():
                metadata.pop(event.broker, None)
                unable.pop(event.broker, None)
            case MetadataCacheUpdated():
                metadata[event.broker] = event
            case LeaderAndIsr(state=state) if state.partition == partition:
                before, known = dict(unable), metadata.get(event.broker)
                if known is None or state.leader not in known.live_brokers:
                    unable[event.broker] = event, known
            case LeaderAndIsrIgnored(state=state) if state.partition == partition:
                unable = before
            case BecomesLeader() | BecomesFollower() if event.partition == partition:
                unable.pop(event.broker, None)
    return unable
