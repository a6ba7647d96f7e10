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
        """The LeaderAndIsr that the leader obeyed last had the member in the ISR but not among the
        replicas. A later one may have arrived, and waits for the thread that applies it."""
        after = events[violation.facts[1]]
        obeyed: int | None = None
        for event in reversed(events[: after.seq]):
            match event:
                case e.BecomesLeader() if obeyed is None and (event.broker, event.partition) == (
                    after.broker,
                    violation.partition,
                ):
                    obeyed = event.leader_epoch
                case e.LeaderAndIsr(broker=after.broker, state=state) if (
                    state.partition,
                    state.leader_epoch,
                ) == (violation.partition, obeyed):
                    return violation.broker in state.isr and violation.broker not in state.replicas
        return False
