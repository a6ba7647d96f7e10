"""A broker that is shutting down stays leader because it does not learn of its successor
(KAFKA-7482)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State

PATIENCE_US = 1_000_000


class LeadsWhileShuttingDown(Diagnosis):
    """Its leaderships are moved, and the change is sent to all live brokers, which exclude brokers
    that are shutting down. Records that it accepts with acks=1 are lost."""

    needs = ("state-change", "server")
    cure = (
        "acks=all; stop brokers one at a time; fixed in 2.0.1, where brokers that shut down are"
        " sent their new roles"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        if len(partition.states) < 2:
            return
        before, name = partition.states[-2].leader, partition.name
        if before != state.leader and self.state.processes.state(before) == "stopping":
            self.begin(
                (before, name),
                written(state),
                f"broker {before} shuts down and leads {name} on, while broker {state.leader} is"
                " its leader",
                name,
                broker=before,
                patience_us=PATIENCE_US,
            )

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self.end((event.broker, event.partition), event, f"it follows broker {event.leader}")

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self.end((event.broker, event.partition), event, "its replica was stopped")

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            for key in self.keys(lambda case: case.broker == event.broker):
                self.end(key, event, "its process ended")
