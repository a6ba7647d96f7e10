"""Up to 0.8.2 a follower may drop its whole log when its leader grows past it (KAFKA-2143)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.invariants.truncations_spare_the_committed import CommittedRecordsTruncated
from emulator.kafka.profiles.guards.following import LOG_IN_RANGE_KEPT
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState
from emulator.trace.state.fetches import thread_key


class WholeLogDropped(Hazard):
    """ReplicaFetcherThread.scala@0.8.2.2 handleOffsetOutOfRange: it asks for the leader's log end
    after the fetch that was out of range, and takes a log that has grown meanwhile for one that
    starts later. (KAFKA-2477, fixed in the same version, is another cause of such a fetch: a race
    in Log.read.)"""

    name = "KAFKA-2143"
    about = (
        "A follower's log is longer than its leader's when it fetches, but no longer so when "
        "it asks for the leader's log end. It drops all its records and starts again."
    )
    breaks = ("truncations spare the committed",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """A fetcher thread removed all records from its leader's log start on, although that log
        ended no earlier than the follower's."""
        if not isinstance(violation, CommittedRecordsTruncated):
            return False
        cut = events[violation.facts[1]]
        thread = thread_key(cut.thread)
        if not isinstance(cut, e.LogTruncated) or thread is None:
            return False
        if not lacks(LOG_IN_RANGE_KEPT, cut, events):
            return False
        state = CoreState()
        for event in events[: violation.facts[1]]:
            state(event)
        leader = state.logs.of(cut.partition, thread[0])
        return cut.to_offset == leader.start and leader.leo >= cut.from_leo
