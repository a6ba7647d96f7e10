"""A broker whose metadata has a topic that was deleted while it had no session."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

PATIENCE_US = 5_000_000
"""A deletion reaches every broker with one request."""


class MissedDeletion(Diagnosis):
    """A deletion is announced once, to the live brokers. A broker that returns with a new session
    receives the existing topics, and its cache keeps the deleted one."""

    needs = ("state-change", "server")
    cure = (
        "restart the broker, or create the topic again: its clients are sent to replicas that do"
        " not exist; in every version with ZooKeeper"
    )

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        for state in event.states:
            for key in self._of(state.partition):
                self.forget(key)  # recreated, or not deleted
        for name in event.removed:
            self.end((event.broker, name), event, "it was sent the deletion")
            for broker in self.state.metadata.entries:
                if broker != event.broker and name in self.state.metadata.shown(broker):
                    self.begin(
                        (broker, name),
                        event,
                        f"broker {broker} shows {name} to clients, which was deleted",
                        name,
                        broker=broker,
                        patience_us=PATIENCE_US,
                    )

    def _of(self, name: TopicPartition) -> list[object]:
        return [key for key, case in self.open_cases.items() if name in case.partitions]

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            for key in self.keys(lambda case: case.broker == event.broker):
                self.end(key, event, "its process ended")
