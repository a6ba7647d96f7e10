"""Up to 0.10.1 a controller that has resigned still acts on what reaches its listeners late
(KAFKA-4447)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import ONLY_THE_ACTIVE_LISTENS
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class ResignedControllerListens(Hazard):
    """KafkaController.scala@0.10.1.1 IsrChangeNotificationListener does not look whether the
    controller is active (B7)."""

    name = "KAFKA-4447"
    about = (
        "A controller resigns while a notification is on its way to it. It deletes the "
        "notification, and the active controller does not learn what it said."
    )
    breaks = ("notifications are read",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker that deleted it had resigned, and had not been elected again."""
        _, deleted = violation.facts
        resigned = None
        for event in events[:deleted]:
            if isinstance(event, e.ControllerElected | e.ControllerResigned) and (
                event.broker == violation.broker
            ):
                resigned = event if isinstance(event, e.ControllerResigned) else None
        return resigned is not None and lacks(ONLY_THE_ACTIVE_LISTENS, resigned, events)
