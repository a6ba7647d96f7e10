"""A leader epoch has one leader: no other broker leads or appends in it."""

from __future__ import annotations

from typing import Literal

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition
from emulator.trace.values import TopicPartition

Does = Literal["leads", "appends"]


class TwoLeaders(Violation, frozen=True):
    epoch: int
    leader: int
    does: Does

    sentence = "in leader epoch {epoch} broker {leader} leads, and {broker} {does}"


class OneLeaderPerEpoch(Invariant):
    """A leader epoch has one leader: no other broker leads or appends in it (S5)."""

    def begin(self) -> None:
        self._leaders: dict[TopicPartition, dict[int, tuple[int, int]]] = {}
        self.state.partitions.listen_to_deletions(self._deleted)

    def _deleted(self, partition: Partition) -> None:
        self._leaders.pop(partition.name, None)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._leads(event, "leads")

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.role == "leader":
            self._leads(event, "appends")

    def _leads(self, event: e.BecomesLeader | e.RecordsAppended, does: Does) -> None:
        epochs = self._leaders.get(event.partition)
        if epochs is None:
            epochs = self._leaders[event.partition] = {}
        known = epochs.get(event.leader_epoch)
        if known is None:
            epochs[event.leader_epoch] = event.broker, event.seq
        elif known[0] != event.broker:
            self.violated(
                TwoLeaders(
                    event.leader_epoch,
                    known[0],
                    does,
                    facts=(known[1], event.seq),
                    partition=event.partition,
                    broker=event.broker,
                )
            )
