"""A restarted broker whose replicas are stopped for its last process's shutdown (KAFKA-7235)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e

PATIENCE_US = 5_000_000
"""A replica that is removed is stopped first, and deleted at once."""


class ShutdownOfTheLastProcess(Diagnosis):
    """Nothing in a request for controlled shutdown says which process sent it. The new process
    counts as shutting down: it is sent nothing any more."""

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
        """A partition that is deleted has its replicas stopped, too."""
        for key in self.keys(lambda case: not set(case.partitions).isdisjoint(event.removed)):
            self.forget(key)
