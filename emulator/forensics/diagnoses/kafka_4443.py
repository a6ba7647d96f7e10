"""A follower skips a LeaderAndIsr because it does not know the leader yet (KAFKA-4443)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

PATIENCE_US = 5_000_000


class LeaderUnknownToFollower(Diagnosis):
    """A new controller sends LeaderAndIsr before UpdateMetadata, which contains the live brokers.
    The follower does not find the leader, and responds without an error."""

    needs = ("state-change",)
    cure = (
        "restart the follower, or elect another controller (delete /controller); fixed in 0.10.2,"
        " where a new controller sends UpdateMetadata first"
    )

    def prepare(self) -> None:
        self._known: set[tuple[int, int]] = set()

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        self._known.add((event.broker, event.sender_epoch))

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        """No case if the follower takes its role, or rejects the request as outdated."""
        key = event.broker, event.state.partition
        if event.state.leader in (-1, event.broker):
            return
        # The broker has heard of a later controller, and refuses the whole request.
        if any(b == event.broker and epoch > event.sender_epoch for b, epoch in self._known):
            return
        if (event.broker, event.sender_epoch) not in self._known:
            self._begin(key, event, event.state.leader)

    def on_leader_and_isr_ignored(self, event: e.LeaderAndIsrIgnored) -> None:
        """The response to a skipped entry is NONE."""
        key = event.broker, event.state.partition
        if event.error != "NONE":
            self.forget(key)
        else:
            self._begin(key, event, event.state.leader)

    def _begin(
        self,
        key: tuple[int, TopicPartition],
        event: e.LeaderAndIsr | e.LeaderAndIsrIgnored,
        to: int,
    ) -> None:
        broker, partition = key
        self.begin(
            key,
            event,
            f"broker {broker} was to follow {to} in {partition} and did not: it did not know that"
            f" broker {to} was alive",
            partition,
            patience_us=PATIENCE_US,
        )

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self.end((event.broker, event.partition), event, "it leads")

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self.end((event.broker, event.partition), event, f"it follows broker {event.leader}")

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self.forget((event.broker, event.partition))

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            self._known = {one for one in self._known if one[0] != event.broker}
            for key in self.keys(lambda case: case.broker == event.broker):
                self.end(key, event, "its process ended")
