"""Up to 1.1 a single OffsetsForLeaderEpoch round may leave a follower with diverging records
(KIP-279)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.following import TRUNCATION_IN_ROUNDS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state import CoreState
from emulator.trace.state.logs import missing


class DivergedInOneRound(Hazard):
    """ReplicaFetcherThread.scala@1.1.1 maybeTruncate asks once, and treats the end offset as that
    of its own epoch."""

    name = "KIP-279"
    about = (
        "After two fail-overs in a row the leader does not know the follower's last epoch. The "
        "follower truncates to the end of another epoch and keeps records that the leader never "
        "had."
    )
    breaks = ("committed records survive", "logs agree", "reads are consistent")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker follows with a log that is long enough but has different records."""
        if violation.partition is None:
            return False
        state, followed = CoreState(), list[AnyEvent]()
        for event in events[: violation.facts[1] + 1]:
            state(event)
            if isinstance(event, e.BecomesFollower) and event.partition == violation.partition:
                followed += [event] if event.broker == violation.broker else []
        committed = state.committed.of(violation.partition)
        here = state.logs.of(violation.partition, violation.broker)
        return (
            committed is not None
            and here.leo >= committed.log.leo
            and missing(committed.log, here) > 0
            and bool(followed)
            and lacks(TRUNCATION_IN_ROUNDS, followed[-1], events)
        )
