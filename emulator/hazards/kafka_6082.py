"""Up to 2.0 nothing keeps a controller from writing after another was elected (KAFKA-6082)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.hazards.base import Hazard, lacks
from emulator.invariants.base import Violation
from emulator.profiles.guards.controller import FENCED_CONTROLLER_WRITES
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class UnfencedController(Hazard):
    """KafkaZkClient.scala@2.0.1 updateLeaderAndIsr has no check of the epoch (H6)."""

    name = "KAFKA-6082"
    about = (
        "A controller whose session has expired goes on with what it was at; its writes are "
        "accepted wherever the version of the state is still the one that it knows."
    )
    breaks = ("state has one writer",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """Whoever wrote runs a version that fences no writes."""
        written = events[violation.facts[1]]
        return isinstance(written, e.ZkTransaction) and lacks(
            FENCED_CONTROLLER_WRITES, written, events
        )
