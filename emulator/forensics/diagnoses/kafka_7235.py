"""A restarted broker whose replicas are stopped because of its previous process's shutdown
(KAFKA-7235)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

PATIENCE_US = 5_000_000
"""When a replica is removed, it is stopped first and deleted at once."""


class ShutdownOfTheLastProcess(Diagnosis):
    """A request for controlled shutdown does not identify the process that sent it. The new process
    is treated as shutting down, and receives no more requests."""

    needs = ("state-change", "server")
    cure = (
        "restart the broker, and leave it down for longer than its session timeout; fixed in 2.2,"
        " where the request carries the broker's epoch"
    )

    def on_stop_replica(self, event: e.StopReplica) -> None:
        key = event.broker, event.partition
        if event.delete:
            self.forget(key)
        elif self.state.processes.state(event.broker) in ("up", "starting"):
            self.begin(
                key,
                event,
                f"broker {event.broker} runs, and controller {event.sender} stopped its replica of"
                f" {event.partition}",
                event.partition,
                patience_us=PATIENCE_US,
            )

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self.end((event.broker, event.state.partition), event, "a LeaderAndIsr reached it")

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        for key in self.keys(lambda case: case.broker == event.broker):
            if event.state in ("dead", "starting", "stopping"):
                self.end(key, event, "its process ended")

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        """The replicas of a deleted partition are stopped, too."""
        for key in self.keys(lambda case: not set(case.partitions).isdisjoint(event.removed)):
            self.forget(key)
