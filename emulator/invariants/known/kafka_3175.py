"""Kafka 0.9 keeps the markers of deletion where `delete.topic.enable` is false (KAFKA-3175)."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.invariants.base import Violation
from emulator.invariants.known.base import Hazard, lacks
from emulator.invariants.nothing_is_left_to_do import StillThere
from emulator.kafka.profiles.guards.controller import DELETION_MARKERS_CLEARED
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from zk.paths import DELETE_TOPICS


class MarkersStay(Hazard):
    """PartitionStateMachine.scala@0.9.0.1 registerListeners watches the markers only if topics may
    be deleted."""

    name = "KAFKA-3175"
    about = (
        "A user deletes a topic where delete.topic.enable is false. No controller hears of the "
        "marker, so neither the topic nor the marker is deleted."
    )
    breaks = ("nothing is left to do",)

    def explains(self, violation: Violation, events: Sequence[AnyEvent]) -> bool:
        """The last controller is of such a version and has not watched the markers."""
        if not isinstance(violation, StillThere) or not violation.path.startswith(DELETE_TOPICS):
            return False
        elected: e.ControllerElected | None = None
        watchers: set[int] = set()
        for event in events:
            match event:
                case e.BrokerStarting():
                    watchers.discard(event.broker)
                case e.ControllerElected():
                    elected = event
                case e.ZkRequest(path=path, watch=True) if path == DELETE_TOPICS:
                    watchers.add(event.broker)
        return (
            elected is not None
            and elected.broker not in watchers
            and lacks(DELETION_MARKERS_CLEARED, elected, events)
        )
