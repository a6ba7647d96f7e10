"""Consumers can read from the next leader what they could read from the last."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition


class AnotherRecord(Violation, frozen=True):
    """The leader epochs of the record that two leaders show at one offset."""

    offset: int
    epoch: int
    other_leader: int
    other_epoch: int

    sentence = (
        "at offset {offset} leader {broker} serves a record of leader epoch {epoch};"
        " leader {other_leader} served one of epoch {other_epoch}"
    )


class ReadsAreConsistent(Invariant):
    """Below its high watermark a leader serves the same records that earlier leaders served,
    unless an unclean election discarded them (S13)."""

    def begin(self) -> None:
        self._shown: dict[TopicPartition, tuple[int, int, int]] = {}
        self.state.partitions.listen(self._written)
        self.state.partitions.listen_to_deletions(self._deleted)

    def _deleted(self, partition: Partition) -> None:
        self._shown.pop(partition.name, None)

    def _written(self, partition: Partition, state: State) -> None:
        if partition.is_unclean:
            self._shown.pop(partition.name, None)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._shows(event)

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.role == "leader":
            self._shows(event)

    def _shows(self, event: e.BecomesLeader | e.HwAdvanced) -> None:
        """A leader is not compared with itself. Logs that agree in a record agree in all records
        before it."""
        name, broker = event.partition, event.broker
        by, hw, seq = self._shown.get(name, (broker, 0, -1))
        if by != broker:
            if self.state.committed.is_deposed(name, broker):
                return
            self._compare(event, min(hw, event.hw) - 1, by, seq)
        if event.hw >= hw:
            self._shown[name] = broker, event.hw, event.seq

    def _compare(self, event: e.BecomesLeader | e.HwAdvanced, last: int, by: int, seq: int) -> None:
        name, broker = event.partition, event.broker
        committed = self.state.committed.of(name)
        if last < 0 or committed is None:
            return
        own_epoch, committed_epoch = (
            self.state.logs.of(name, broker).epoch_at(last),
            committed.log.epoch_at(last),
        )
        if own_epoch is not None and committed_epoch is not None and own_epoch != committed_epoch:
            facts = seq, event.seq
            self.violated(
                AnotherRecord(
                    last, own_epoch, by, committed_epoch, facts=facts, partition=name, broker=broker
                )
            )
