"""Up to 2.1 a control request does not identify the process of the broker that it is for
(KAFKA-7235)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import BROKER_EPOCHS
from emulator.trace.events import AnyEvent


class RequestOfAFormerLife(Hazard):
    """KIP-380: queued requests for a broker reach any process at its address."""

    name = "KAFKA-7235"
    about = (
        "A control request sent to a broker before it restarted is obeyed by the new process: "
        "nothing in the request identifies the process."
    )
    breaks = ("requests reach the intended process",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The broker that applied the request runs a version without broker epochs."""
        return lacks(BROKER_EPOCHS, events[violation.facts[1]], events)
