"""An UpdateMetadata that timed out and was sent again arrives after later ones."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.invariants.metadata_converges import ShowsAnother, ShowsDeleted
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class LateUpdateMetadata(Hazard):
    """Brokers check only the controller epoch of an UpdateMetadata (MetadataCache.scala@2.6.3
    updateMetadata compares nothing else), and a request that timed out may still be in flight."""

    name = "late UpdateMetadata"
    about = (
        "A copy of an UpdateMetadata that the controller gave up arrives after later requests. "
        "The broker's metadata goes back: nothing in the request says that it is old. It stays so "
        "until the partition changes again."
    )
    breaks = ("metadata never moves back", "metadata converges")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Before it arrived, its send thread had sent the same broker another one. A thread has one
        request in flight at a time, so this one had timed out. If the old metadata stays, one of
        the others had brought ZooKeeper's state."""
        shown = events[violation.facts[1]]
        sent = events[shown.cause] if shown.cause >= 0 else None
        if not isinstance(sent, e.ControlRequestSent):
            return False
        overtaking = {
            event.seq
            for event in events[sent.seq + 1 : shown.seq]
            if isinstance(event, e.ControlRequestSent)
            and (event.broker, event.thread) == (sent.broker, sent.thread)
        }
        if not isinstance(violation, ShowsAnother | ShowsDeleted):
            return bool(overtaking)
        return any(
            isinstance(event, e.MetadataCacheUpdated)
            and event.broker == violation.broker
            and event.cause in overtaking
            and _brings(event, violation)
            for event in events[sent.seq + 1 : shown.seq]
        )


def _brings(update: e.MetadataCacheUpdated, violation: ShowsAnother | ShowsDeleted) -> bool:
    """Whether the broker then had the state that the violation misses at the end."""
    match violation:
        case ShowsDeleted():
            return violation.partition in update.removed
        case ShowsAnother():
            state = (violation.partition, violation.actual)
            return state in [(one.partition, one.zk_version) for one in update.states]
