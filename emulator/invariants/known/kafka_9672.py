"""KAFKA-9672: during a reassignment the leader receives an ISR with members that are no longer
replicas."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class Kafka9672(Hazard):
    """The controller sends the leader its new replicas before it has removed the old ones from the
    ISR. The high watermark then waits only for the new ones (fixed in 3.0)."""

    name = "KAFKA-9672"
    about = (
        "A reassignment sends the leader its new replicas before the old ones have left the ISR. "
        "Until they have, the high watermark does not wait for them."
    )
    breaks = ("hw within isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's last LeaderAndIsr had the member in the ISR but not among the replicas."""
        after = events[violation.facts[1]]
        for event in reversed(events[: after.seq]):
            if (
                isinstance(event, e.LeaderAndIsr)
                and event.broker == after.broker
                and event.state.partition == violation.partition
            ):
                state = event.state
                return violation.broker in state.isr and violation.broker not in state.replicas
        return False
