"""An UpdateMetadata that the controller gave up arrives after later ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, unknown_leaders
from emulator.invariants.metadata_converges import ShowsAnother, ShowsDeleted
from emulator.invariants.metadata_never_moves_back import MovesBack
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

_HEALS = ("heal_link", "plug_in")


class LateUpdateMetadata(Hazard):
    """Brokers check only the controller epoch of an UpdateMetadata (MetadataCache.scala@2.6.3
    updateMetadata compares nothing else), and a request that timed out, or that a cut link held
    while its receiver's session ended, may still be in flight."""

    name = "late UpdateMetadata"
    about = (
        "A copy of an UpdateMetadata that the controller gave up arrives after later requests. "
        "The broker's metadata goes back: nothing in the request says that it is old. It stays so "
        "until the partition changes again. A broker that it does not list cannot be followed."
    )
    breaks = ("metadata never moves back", "metadata converges", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Metadata goes back to a late request. If it stays, or keeps a replica from following its
        leader, a request that overtook it had brought what is missing."""
        if isinstance(violation, MissingReplicas):
            unable = unknown_leaders(violation.partition, events)
            return all(
                broker in unable and _hides_the_leader(*unable[broker], events)
                for broker in violation.missing
            )
        shown = events[violation.facts[1]]
        if isinstance(violation, MovesBack):
            return events[violation.facts[0]].cause in _overtaking(shown, events)
        if not isinstance(violation, ShowsAnother | ShowsDeleted):
            return False
        return any(_brings(one, violation) for one in _updates_before(shown, events))


def _overtaking(shown: AnyEvent, events: Sequence[AnyEvent]) -> set[int]:
    """The requests that its send thread had sent the same broker between the update's request and
    its arrival. A thread has one request in flight at a time, so this one had been given up: it
    timed out, or the broker's session ended and it has a new thread of the same name."""
    sent = _request_of(shown, events)
    if sent is None:
        return set()
    return {
        event.seq
        for event in events[sent.seq + 1 : shown.seq]
        if isinstance(event, e.ControlRequestSent)
        and (event.broker, event.thread) == (sent.broker, sent.thread)
    }


def _request_of(shown: AnyEvent, events: Sequence[AnyEvent]) -> e.ControlRequestSent | None:
    """The request that brought the update. What a cut link held has the heal as its cause; then it
    is the last one with these partitions that its receiver had not seen before the heal."""
    cause = events[shown.cause] if shown.cause >= 0 else None
    if isinstance(cause, e.ControlRequestSent):
        return cause
    is_held = isinstance(cause, e.ActionApplied) and cause.do in _HEALS
    if not is_held or not isinstance(shown, e.MetadataCacheUpdated):
        return None
    partitions = {state.partition for state in shown.states} | {*shown.removed}
    sent: e.ControlRequestSent | None = None
    for event in events[: shown.cause]:
        match event:
            case e.ControlRequestSent(request="UpdateMetadata", to=shown.broker) if (
                event.broker == shown.sender and set(event.partitions) == partitions
            ):
                sent = event
            case e.MetadataCacheUpdated() if sent is not None and event.cause == sent.seq:
                sent = None
            case e.BrokerStarting(broker=shown.broker):
                sent = None
    return sent


def _updates_before(
    shown: AnyEvent, events: Sequence[AnyEvent]
) -> Iterator[e.MetadataCacheUpdated]:
    """The updates by requests to the same broker that overtook this one."""
    overtaking = _overtaking(shown, events)
    for event in events[: shown.seq]:
        if isinstance(event, e.MetadataCacheUpdated) and event.cause in overtaking:
            yield event


def _hides_the_leader(
    received: e.LeaderAndIsr, metadata: e.MetadataCacheUpdated | None, events: Sequence[AnyEvent]
) -> bool:
    """Whether a request that overtook this metadata had listed the leader."""
    return metadata is not None and any(
        received.state.leader in one.live_brokers for one in _updates_before(metadata, events)
    )


def _brings(update: e.MetadataCacheUpdated, violation: ShowsAnother | ShowsDeleted) -> bool:
    """Whether the broker then had the state that the violation misses at the end."""
    match violation:
        case ShowsDeleted():
            return violation.partition in update.removed
        case ShowsAnother():
            state = (violation.partition, violation.actual)
            return state in [(one.partition, one.zk_version) for one in update.states]
