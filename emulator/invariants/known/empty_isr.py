"""Up to 1.0 the last ISR member is removed with its broker if unclean elections are allowed."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import LAST_ISR_MEMBER_STAYS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class EmptyIsr(Hazard):
    """KafkaController.scala@1.0.2 removeReplicaFromIsr."""

    name = "empty ISR"
    about = (
        "Unclean elections are allowed and the last ISR member dies: the controller writes an "
        "empty ISR, which no longer shows which replica had every record."
    )
    breaks = ("leader in isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """A controller without the guard wrote the empty ISR."""
        written = events[violation.facts[1]]
        if not isinstance(written, e.ZkTransaction):
            return False
        payloads = [written.data, *(op.data for op in written.ops)]
        return any('"isr":[]' in (one or "") for one in payloads) and lacks(
            LAST_ISR_MEMBER_STAYS, written, events
        )
