"""Up to 2.0 a follower that has every record is removed once it stops fetching (KAFKA-7152)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, expelled, lacks
from emulator.kafka.profiles.guards.isr import STAY_AT_LOG_END
from emulator.trace.events import AnyEvent


class ExpelledAtTheLogEnd(Hazard):
    """Partition.scala@2.0.1 getOutOfSyncReplicas checks only the time."""

    name = "KAFKA-7152"
    about = (
        "A follower of an idle topic is paused for longer than replica.lag.time.max.ms. It has "
        "every record, yet it is removed from the ISR."
    )
    breaks = ("caught up members stay",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's version lacks the guard, and the removed follower has every record."""
        started, behind = expelled(violation, events)
        return behind <= 0 and lacks(STAY_AT_LOG_END, started, events)
