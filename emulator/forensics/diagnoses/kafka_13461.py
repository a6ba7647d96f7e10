"""A controller resigns and none is elected, because `/controller` still contains its id
(KAFKA-13461)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

PATIENCE_US = 5_000_000


class ResignedAndStillNamed(Diagnosis):
    """The controller resigns after an authentication failure although its session lives, finds its
    own id in `/controller`, and does not run for election. Needs ZooKeeper's own log."""

    needs = ("controller", "zookeeper")
    cure = (
        "delete /controller; fixed in 2.8.2 and 3.0.1, where an authentication failure does not"
        " make the controller resign"
    )

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        if self.state.znodes.controller == event.broker:
            self.begin(
                "controller",
                event,
                f"broker {event.broker} resigned as controller, and /controller still names it:"
                " nobody is elected",
                patience_us=PATIENCE_US,
            )

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.end("controller", event, f"broker {event.broker} was elected")

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        case = self.open_cases.get("controller")
        if case is not None and self.state.znodes.controller != case.broker:
            self.end("controller", event, "/controller was deleted")
