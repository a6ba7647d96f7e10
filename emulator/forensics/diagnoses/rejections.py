"""A series of a leader's ISR updates that ZooKeeper refuses; shared by two hazards.

Owns when such a series begins and ends. The writer of the intervening state distinguishes the
hazards.
"""

from __future__ import annotations

from typing import ClassVar

from emulator.forensics.diagnoses.base import Diagnosis
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class RejectedUpdates(Diagnosis):
    """`is_own`: the leader itself wrote ZooKeeper's state."""

    is_own: ClassVar[bool]
    needs: ClassVar[tuple[str, ...]] = ("server",)

    def prepare(self) -> None:
        self._expired: set[int] = set()
        self._counts: dict[tuple[int, TopicPartition], int] = {}

    def on_zk_session_state(self, event: e.ZkSessionState) -> None:
        if event.state == "Expired":
            self._expired.add(event.broker)

    def on_isr_update_rejected(self, event: e.IsrUpdateRejected) -> None:
        key = event.broker, event.partition
        state = self.state.partitions.of(event.partition).now
        is_own = (
            state is not None
            and state.by == event.broker
            and state.by_leader
            and state.version == event.cached_zk_version + 1
        )
        if key not in self.open_cases and is_own != self.is_own:
            return
        case = self.begin(key, event, "", event.partition)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        cached = event.cached_zk_version
        has = "another" if state is None or state.version <= cached else str(state.version)
        case.seen = (
            f"broker {event.broker} rejected {count} ISR update{'s'[: count > 1]} of"
            f" {event.partition}: its cached version is {cached}, ZooKeeper has {has}"
        )
        if state is not None and state.leader not in (-1, event.broker):
            case.seen += f" and leader {state.leader}"
        if event.broker in self._expired:
            case.seen += "; its session had expired before"
        case.facts[1:] = [event.seq]

    def _stop(self, event: e.AnyEvent, partition: TopicPartition, how: str) -> None:
        key = event.broker, partition
        self._counts.pop(key, None)
        self.end(key, event, how)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._stop(event, event.partition, "a LeaderAndIsr brought the current state")

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._stop(event, event.partition, "a LeaderAndIsr brought the current state")

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        """Only a follower truncates, so this ends the case if no other log line does."""
        self._stop(event, event.partition, "it follows another leader")

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        self._stop(event, event.partition, "its next update was written")

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self._stop(event, event.partition, "its replica was stopped")

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state in ("dead", "starting"):
            self._expired.discard(event.broker)
            for key in self.keys(lambda case: case.broker == event.broker):
                assert isinstance(key, tuple)
                self._stop(event, key[1], "its process ended")
