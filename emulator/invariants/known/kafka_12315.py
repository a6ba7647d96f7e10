"""KAFKA-12315: a controller that was fenced during a transition fails when it is elected again."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard
from emulator.trace import events as e
from emulator.trace.events import AnyEvent

_MARK = "IllegalState: the batch is not empty"


class Kafka12315(Hazard):
    """The transition's requests stay in the state machine's batch, so every later transition of
    that machine fails until the process ends, without the controller noticing (open)."""

    name = "KAFKA-12315"
    about = (
        "A controller is fenced while it moves replicas or partitions, and elected again later. "
        "Requests left in its batch make every such transition fail until its process ends."
    )
    breaks = ("metadata converges", "nothing is left to do", "replicas return to isr")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The current controller has failed in this way, in its current process."""
        controller, failed = 0, False
        for event in events:
            match event:
                case e.ControllerElected(broker=broker):
                    controller, failed = broker, False
                case e.ThreadFailed(broker=broker, error=error) if error.startswith(_MARK):
                    failed = failed or broker == controller
                case e.BrokerStarting(broker=broker) if broker == controller:
                    failed = False
        return failed
