"""With AlterIsr, up to 3.0 the high watermark is not updated when a shrink is committed
(KAFKA-13091)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.alter_isr import HW_AFTER_ALTER_ISR
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class HighWatermarkStays(Hazard):
    """Partition.scala@2.7.2 handleAlterIsrUpdate adopts the new ISR and does nothing else."""

    name = "KAFKA-13091"
    about = (
        "A leader learns that its shrink is committed, but acks=all still waits for the removed "
        "replica until the next append or fetch."
    )
    breaks = ("acks follow the isr",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The shrink came from the controller's response to a proposal, at a leader without the
        fix."""
        shrink, rise = (events[fact] for fact in violation.facts)
        proposed = any(
            isinstance(one, e.AlterIsrProposed)
            and (one.broker, one.partition) == (shrink.broker, violation.partition)
            for one in events[: shrink.seq]
        )
        return (
            isinstance(shrink, e.IsrUpdated)
            and isinstance(rise, e.HwAdvanced)
            and proposed
            and lacks(HW_AFTER_ALTER_ISR, shrink, events)
        )
