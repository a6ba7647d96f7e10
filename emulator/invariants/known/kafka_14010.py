"""Up to 3.2.0 a proposal that is resubmitted in the response handler is refused as a duplicate
(KAFKA-14010)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import CLEAR_BEFORE_CALLBACK
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class RefusesItsOwnRepetition(Hazard):
    """AlterIsrManager.scala@2.8.2 handleAlterIsrResponse runs the callback before it removes the
    entry, so a resubmission finds the entry and is refused. Then the entry is removed, and nothing
    is sent (H19)."""

    name = "KAFKA-14010"
    about = (
        "A leader repeats its proposal after an error, while the first one is still in the map. "
        "The repetition is refused as a duplicate, and the partition stays pending for ever."
    )
    breaks = ("replicas return to isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The leader's resubmission was refused, and the leader has not changed since."""
        name = violation.partition
        repeated, refused = -1, False
        for event in events:
            match event:
                case e.BecomesLeader(partition=at) if at == name:
                    refused = False
                case e.AlterIsrFailed(partition=at, outcome="resubmitted") if at == name:
                    repeated = event.seq
                case e.AlterIsrFailed(partition=at, error="OPERATION_NOT_ATTEMPTED") if at == name:
                    if event.cause == repeated and event.outcome == "stays pending":
                        refused = lacks(CLEAR_BEFORE_CALLBACK, event, events)
        return refused
