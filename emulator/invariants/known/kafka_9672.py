"""KAFKA-9672: while a reassignment shrinks, the leader receives an ISR with members that are
no longer replicas."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class Kafka9672(Hazard):
    """The controller sends the leader its new replicas before it has taken the old ones out of the
    ISR; the high watermark then waits for the new ones only (fixed in 3.0)."""

    name = "KAFKA-9672"
    about = (
        "A reassignment sends the leader its new replicas before the old ones have left the ISR. "
        "Until they have, the high watermark does not wait for them."
    )
    breaks = ("hw within isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's last LeaderAndIsr had the member in its ISR and not among its replicas."""
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
