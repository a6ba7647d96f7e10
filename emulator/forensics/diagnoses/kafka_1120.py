"""A restarted broker to which the controller sends nothing (KAFKA-1120)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

PATIENCE_US = 15_000_000
"""Longer than a session timeout: by then a broker's death has been noticed, and then its return."""


class BounceNotSeen(Diagnosis):
    """The broker died and returned before the controller had looked, so the list of brokers looks
    unchanged."""

    needs = ("state-change", "controller", "server")
    cure = (
        "restart the broker again, and leave it down for longer than its session timeout; fixed in"
        " 2.2, where a registration has an epoch"
    )

    def prepare(self) -> None:
        self._hosts: set[int] = set()

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self._hosts.update(event.state.replicas)
        self.end(event.broker, event, "a LeaderAndIsr reached it")

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        self.end(event.broker, event, "the controller sent it metadata")

    def on_broker_registered(self, event: e.BrokerRegistered) -> None:
        controller = self.state.controller.broker
        if event.broker in self._hosts and controller not in (0, event.broker):
            self.begin(
                event.broker,
                event,
                f"broker {event.broker} has restarted and hosts replicas, but controller"
                f" {controller} sends it nothing",
                patience_us=PATIENCE_US,
            )

    def on_broker_change(self, event: e.BrokerChange) -> None:
        """The change was noticed late, which is another failure."""
        for broker in (*event.added, *event.deleted, *event.bounced):
            self.end(broker, event, f"controller {event.broker} noticed it")

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting", "stopping"):
            self.end(event.broker, event, "its process ended")

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        for key in list(self.open_cases):
            self.end(key, event, f"broker {event.broker} was elected controller")
