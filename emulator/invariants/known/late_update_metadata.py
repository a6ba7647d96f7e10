"""An UpdateMetadata that was given up and sent again arrives after later ones."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class LateUpdateMetadata(Hazard):
    """The only guard of UpdateMetadata is the controller's epoch (MetadataCache.scala@2.6.3
    updateMetadata compares nothing else), and a request that timed out may still be on its way."""

    name = "late UpdateMetadata"
    about = (
        "A copy of an UpdateMetadata that the controller gave up arrives after later requests. "
        "The broker's metadata goes back: nothing in the request says that it is old."
    )
    breaks = ("metadata never moves back",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The thread that sent it had sent the same broker another one before it arrived: it has
        one on its way at a time, so it had given this one up."""
        shown = events[violation.facts[1]]
        sent = events[shown.cause] if shown.cause >= 0 else None
        if not isinstance(sent, e.ControlRequestSent):
            return False
        return any(
            isinstance(event, e.ControlRequestSent)
            and (event.broker, event.thread) == (sent.broker, sent.thread)
            for event in events[sent.seq + 1 : shown.seq]
        )
