"""Which Kafka version did what: hazards that newer versions are guarded against ask for it.

Owns what the trace says of versions: each process names its own when it starts. A guard that was
switched for a run is not in there: what a run breaks without it is for its reader to find.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.profiles.base import profiles
from emulator.profiles.guards.base import Guard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


def lacks(guard: Guard, at: AnyEvent, events: Sequence[AnyEvent]) -> bool:
    """Whether the version that the broker of this event ran then has no such guard."""
    for event in reversed(events[: at.seq]):
        if isinstance(event, e.BrokerStarting) and event.broker == at.broker:
            return guard not in profiles()[event.profile].guards
    return False
