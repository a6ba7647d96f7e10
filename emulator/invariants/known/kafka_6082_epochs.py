"""Up to 2.0 a controller may raise the epoch while /controller belongs to another (KAFKA-6082)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation, invariants
from emulator.invariants.known.base import Hazard, lacks
from emulator.kafka.profiles.guards.controller import ATOMIC_ELECTION
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.state.znodes import Znodes


class EpochOfAnother(Hazard):
    """KafkaController.scala@2.0.1 elect creates `/controller` and then raises the epoch in a
    separate request; in between the session may expire and another broker be elected (H8)."""

    name = "KAFKA-6082-epochs"
    about = (
        "A controller loses /controller between creating it and raising the epoch. It raises its "
        "successor's epoch: brokers obey a controller that /controller does not name."
    )
    breaks = (
        "a controller is there",
        "brokers are registered",
        "controller knows states",
        "metadata converges",
        "nothing is left to do",
        "notifications are read",
        "replicas return to isr",
        "the controller is not fenced",
        "dead brokers are announced",
    )

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The last broker that raised the epoch did so while /controller named another one; up to
        the violation, or for liveness up to the end."""
        znodes, usurped = Znodes(), False
        is_over = invariants()[violation.invariant].liveness
        for event in events if is_over else events[: violation.facts[1] + 1]:
            if isinstance(event, e.ZkTransaction):
                znodes.on_zk_transaction(event)
            elif isinstance(event, e.ControllerElected):
                usurped = znodes.controller != event.broker and lacks(
                    ATOMIC_ELECTION, event, events
                )
        return usurped
