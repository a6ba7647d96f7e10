"""Up to 2.0 a broker that is shutting down does not learn of new leaders (KAFKA-7482)."""

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
    breaks = ("demoted leaders are informed",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Since its last LeaderAndIsr as leader it received metadata of this partition but no
        LeaderAndIsr, from a version that sends none to brokers that are shutting down. A second
        shutdown attempt also sends StopReplica, which changes no role."""
        since, until = violation.facts
        requests = [
            event
            for event in events[_last_leader_and_isr(violation, events[since:until], since) : until]
            if isinstance(event, e.ControlRequestSent)
            and event.to == violation.broker
            and violation.partition in event.partitions
        ]
        return (
            any(event.request == "UpdateMetadata" for event in requests)
            and not any(event.request == "LeaderAndIsr" for event in requests)
            and lacks(SHUTTING_DOWN_ARE_TOLD, requests[-1], events)
        )


def _last_leader_and_isr(violation: Violation, events: Sequence[AnyEvent], began: int) -> int:
    """When it last received its leadership: a new controller sends it again."""
    again = [
        event.seq
        for event in events
        if isinstance(event, e.LeaderAndIsr)
        and (event.broker, event.state.partition) == (violation.broker, violation.partition)
        and event.state.leader == violation.broker
    ]
    return again[-1] if again else began
