"""Up to 0.10.1 a follower that is always slightly behind is never considered caught up
(KAFKA-4485)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.caught_up_members_stay import LATELY_US
from emulator.invariants.known.base import Hazard, expelled, lacks
from emulator.kafka.profiles.guards.isr import CAUGHT_UP_BY_LAST_FETCH
from emulator.trace.events import AnyEvent


class NeverCaughtUp(Hazard):
    """Replica.scala@0.10.1.1 updateLogReadResult records the time of a fetch only if its offset is
    the leader's current log end."""

    name = "KAFKA-4485"
    about = (
        "The leader's log grows while a fetch is on its way, each time. The follower is never "
        "exactly at the log end and leaves the ISR, although it is only milliseconds behind."
    )
    breaks = ("caught up members stay",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's version measures from the last fetch at exactly its log end, and that was
        longer ago than the follower has been behind. The removed follower lacks records."""
        started, behind = expelled(violation, events)
        since_ms = {one.replica: one.not_caught_up_ms for one in started.out_of_sync}
        by_time = since_ms[violation.broker] * 1000 > 2 * LATELY_US
        return behind > 0 and by_time and lacks(CAUGHT_UP_BY_LAST_FETCH, started, events)
