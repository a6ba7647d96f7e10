"""A controller that keeps acting after it has resigned (KAFKA-4447)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, Fact
from emulator.trace import events as e

SURE_AFTER_US = 100_000
"""The remaining error of the clocks of logs is smaller."""


class ResignedAndActs(Diagnosis):
    """Its listeners stay registered, so an event that was queued before is still processed. It
    informs no broker, and deletes the notification that the new controller would have read."""

    needs = ("controller", "zookeeper")
    cure = (
        "elect another controller (delete /controller): it reads all states; fixed in 0.10.2, where"
        " a controller that resigns stops listening"
    )

    def prepare(self) -> None:
        self._resigned: dict[int, e.ControllerResigned] = {}

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        self._resigned[event.broker] = event

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._resigned.pop(event.broker, None)
        if event.broker in self.open_cases:
            self.end(event.broker, event, "it was elected again")

    def on_isr_change_cleared(self, event: e.IsrChangeCleared) -> None:
        self._acted(event, f"deleted {len(event.paths)} notification{'s'[: len(event.paths) > 1]}")

    def on_broker_change(self, event: e.BrokerChange) -> None:
        self._acted(event, "compared the registrations of brokers")

    def on_partition_state_changed(self, event: e.PartitionStateChanged) -> None:
        self._acted(event, f"moved {event.partition} to {event.to_state}", SURE_AFTER_US)

    def _acted(self, event: Fact, what: str, after_us: int = 0) -> None:
        resigned = self._resigned.get(event.broker)
        if resigned is None or event.t - resigned.t < after_us:
            return
        case = self.begin(event.broker, resigned, "")
        case.seen = f"broker {event.broker} had resigned as controller, and then {what}"
        case.facts[1:] = [event.seq]

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            self._resigned.pop(event.broker, None)
            self.end(event.broker, event, "its process ended")
