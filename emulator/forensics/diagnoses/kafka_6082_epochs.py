"""A controller that raises its successor's epoch (KAFKA-6082-epochs)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e


class EpochOfAnother(Diagnosis):
    """Up to 2.0 `/controller` is created and the epoch raised in separate requests. In between the
    session may expire, and another broker be elected."""

    needs = ("controller", "zookeeper")
    cure = (
        "restart the broker that /controller does not name; upgrade to 2.1, where creating"
        " /controller and raising the epoch are one transaction"
    )

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.end("epoch", event, f"broker {event.broker} was elected")
        owner = self.state.znodes.controller
        if owner not in (None, event.broker):
            self.begin(
                "epoch",
                event,
                f"broker {event.broker} raised the controller epoch to {event.controller_epoch}"
                f" while /controller names broker {owner}: brokers obey one, and refuse the other",
            )

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        case = self.open_cases.get("epoch")
        if case is not None and event.broker == case.broker and event.state == "dead":
            self.end("epoch", event, "its process ended")

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        case = self.open_cases.get("epoch")
        if case is not None and event.broker == case.broker:
            self.end("epoch", event, "it resigned")
