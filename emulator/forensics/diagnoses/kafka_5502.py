"""A controller that handles the death of a broker after the broker has restarted (KAFKA-5502)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

SURE_AFTER_US = 100_000
"""The remaining error of the clocks of logs is smaller."""


class RestartedTakenForDead(Diagnosis):
    """The controller is busy; two events are queued, each with the list of brokers from when it was
    queued. It handles an outdated death, and moves leaderships away."""

    needs = ("controller", "server")
    cure = (
        "find what kept the controller busy (its event queue); fixed in 1.1, where it reads the"
        " list of brokers when it handles the event"
    )

    def prepare(self) -> None:
        self._registered: dict[int, e.BrokerRegistered] = {}
        self._noticed_us: dict[int, int] = {}

    def on_broker_registered(self, event: e.BrokerRegistered) -> None:
        """The controller's log line may precede the broker's."""
        if event.t - self._noticed_us.get(event.broker, -SURE_AFTER_US) >= SURE_AFTER_US:
            self._registered[event.broker] = event

    def on_broker_change(self, event: e.BrokerChange) -> None:
        for broker in (*event.added, *event.bounced):
            self._noticed_us[broker] = event.t
            self._registered.pop(broker, None)
            self.end(broker, event, f"controller {event.broker} noticed that it runs")
        for broker in event.deleted:
            registered = self._registered.get(broker)
            if registered is not None and event.t - registered.t >= SURE_AFTER_US:
                case = self.begin(
                    broker,
                    event,
                    f"controller {event.broker} takes broker {broker} for dead, which registered"
                    f" {(event.t - registered.t) / 1e6:.1f} s before",
                    broker=broker,
                )
                case.facts.insert(0, registered.seq)

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._registered.clear()
        for key in list(self.open_cases):
            self.end(key, event, f"broker {event.broker} was elected controller")

    def on_zk_session_state(self, event: e.ZkSessionState) -> None:
        if event.state == "Expired":
            self._registered.pop(event.broker, None)

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting", "stopping"):
            self._registered.pop(event.broker, None)
            self.end(event.broker, event, "its process ended")
