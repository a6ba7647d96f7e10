"""A notification that a new controller ignores (KAFKA-5879)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

PATIENCE_US = 3_000_000


class NotificationLeft(Diagnosis):
    """The notification was created while there was no controller. The next controller watches the
    parent but does not list the children, so only another notification wakes it up. Needs
    ZooKeeper's own log."""

    needs = ("controller", "zookeeper")
    cure = (
        "any further ISR change brings a notification, and all are read; fixed in 1.1, where a new"
        " controller deletes what it finds"
    )

    def prepare(self) -> None:
        self._present: dict[str, e.IsrChangeNotified] = {}

    def on_isr_change_notified(self, event: e.IsrChangeNotified) -> None:
        self._present[event.path] = event

    def on_isr_change_cleared(self, event: e.IsrChangeCleared) -> None:
        for path in event.paths:
            self._present.pop(path, None)
            self.end(path, event, f"controller {event.broker} deleted it")

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        for path, notified in self._present.items():
            case = self.begin(
                path,
                event,
                f"{path} of broker {notified.broker} was there when controller {event.broker} was"
                f" elected, which left it",
                *notified.partitions,
                patience_us=PATIENCE_US,
            )
            case.facts.insert(0, notified.seq)
