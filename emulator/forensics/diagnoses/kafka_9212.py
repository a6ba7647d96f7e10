"""Metadata with an older leader epoch than the one sent to the replicas (KAFKA-9212)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class OldEpochInMetadata(Diagnosis):
    """A reassignment raises the epoch, but the controller does not store it. Clients that use their
    metadata's epoch are fenced by the leader, refresh their metadata, and receive the same
    epoch."""

    needs = ("state-change",)
    cure = (
        "elect another controller (delete /controller): it reads all states; fixed in 2.3.2 and"
        " 2.4, where the controller stores the epoch that it raises"
    )

    def prepare(self) -> None:
        self._sent: dict[tuple[int, TopicPartition], tuple[int, int, int]] = {}

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        state = event.state
        sent = event.sender, event.sender_epoch, state.leader_epoch
        self._sent[event.broker, state.partition] = sent

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        """One thread sends both kinds of requests, so the later one is newer."""
        for state in event.states:
            key = event.broker, state.partition
            sender, sender_epoch, epoch = self._sent.get(key, (-1, -1, -1))
            if state.leader_epoch >= epoch:
                self.end(key, event, f"metadata has leader epoch {state.leader_epoch}")
            elif (sender, sender_epoch) == (event.sender, event.sender_epoch):
                self.begin(
                    key,
                    event,
                    f"controller {sender} sent broker {event.broker} leader epoch {epoch} of"
                    f" {state.partition} in LeaderAndIsr, and {state.leader_epoch} in metadata",
                    state.partition,
                )
        for name in event.removed:
            self._sent.pop((event.broker, name), None)
            self.end((event.broker, name), event, "the topic was deleted")

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            for key in self.keys(lambda case: case.broker == event.broker):
                self.end(key, event, "its process ended")
            self._sent = {key: sent for key, sent in self._sent.items() if key[0] != event.broker}
