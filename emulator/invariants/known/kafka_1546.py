"""In 0.8 a follower that is too many messages behind is removed, however recently it was caught up
(KAFKA-1546)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, expelled, lacks
from emulator.kafka.profiles.guards.isr import LAG_BY_TIME_ONLY
from emulator.trace.events import AnyEvent


class ExpelledByMessages(Hazard):
    """Partition.scala@0.8.2.2 getOutOfSyncReplicas: `leaderLogEndOffset - logEndOffset >
    keepInSyncMessages`."""

    name = "KAFKA-1546"
    about = (
        "A burst longer than replica.lag.max.messages arrives between two fetches: followers that "
        "had every record a moment ago leave the ISR."
    )
    breaks = ("caught up members stay",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's version counts messages, and the removed follower lacks some."""
        started, behind = expelled(violation, events)
        return behind > 0 and lacks(LAG_BY_TIME_ONLY, started, events)
