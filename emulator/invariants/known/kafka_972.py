"""Up to 0.8.2 a controller does not announce which brokers are there (KAFKA-972)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.brokers_are_registered import UnknownBrokers
from emulator.invariants.known.base import Hazard, decided, lacks, missing_members
from emulator.kafka.profiles.guards.controller import BROKER_LIST_ANNOUNCED
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


class BrokerListNotAnnounced(Hazard):
    """KafkaController.scala@0.8.2.2 onBrokerStartup sends UpdateMetadata to the new brokers alone,
    and onBrokerFailure sends none. All others wait for the next change of a partition."""

    name = "KAFKA-972"
    about = (
        "A broker joins or dies and no partition changes its leader or ISR. The controller sends "
        "no UpdateMetadata to the other brokers, so their metadata lists the wrong brokers."
    )
    breaks = ("brokers are registered", "dead brokers are announced")

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The controller has such a version. What a broker lists was sent before the controller saw
        the change."""
        if not isinstance(violation, UnknownBrokers):
            return lacks(BROKER_LIST_ANNOUNCED, events[violation.facts[0]], events)
        wrong = missing_members(violation)
        for event in reversed(events):
            if isinstance(event, e.BrokerChange) and wrong & {*event.added, *event.deleted}:
                listed_before = decided(violation.facts[1], events) < event.seq
                return listed_before and lacks(BROKER_LIST_ANNOUNCED, event, events)
        return False
