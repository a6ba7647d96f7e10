"""Up to 2.0 a broker that shuts down is not told that others lead (KAFKA-7482)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import SHUTTING_DOWN_ARE_TOLD
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class LeadershipMovesUnannounced(Hazard):
    """ControllerChannelManager.scala@2.0.1 sends LeaderAndIsr to `liveBrokerIds` only."""

    name = "KAFKA-7482"
    about = (
        "A controlled shutdown moves leaderships and informs only live brokers. The broker that "
        "shuts down learns it from its metadata alone, and leads until it ends."
    )
    breaks = ("leaders are told",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Since it was last told that it leads it was sent metadata of this partition, by a version
        that tells no broker that shuts down, and no LeaderAndIsr."""
        since, until = violation.facts
        requests = [
            event
            for event in events[_told_to_lead(violation, events[since:until], since) : until]
            if isinstance(event, e.ControlRequestSent)
            and event.to == violation.broker
            and violation.partition in event.partitions
        ]
        return (
            bool(requests)
            and all(event.request == "UpdateMetadata" for event in requests)
            and lacks(SHUTTING_DOWN_ARE_TOLD, requests[-1], events)
        )


def _told_to_lead(violation: Violation, events: Sequence[AnyEvent], began: int) -> int:
    """When it was told so last: a new controller tells it again."""
    again = [
        event.seq
        for event in events
        if isinstance(event, e.LeaderAndIsr)
        and (event.broker, event.state.partition) == (violation.broker, violation.partition)
        and event.state.leader == violation.broker
    ]
    return again[-1] if again else began
