"""A record is committed before it is acknowledged with acks=all."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition
from emulator.trace.values import TopicPartition


class AcknowledgedUncommitted(Violation, frozen=True):
    end: int
    hw: int

    sentence = "records up to {end} were acknowledged, and the high watermark was {hw}"


class AcknowledgedIsCommitted(Invariant):
    """A record acknowledged with acks=all is below a high watermark that some leader had."""

    def begin(self) -> None:
        self._committed: dict[TopicPartition, tuple[int, int]] = {}
        self._heard = False
        self.state.partitions.listen_to_deletions(self._deleted)

    def _deleted(self, partition: Partition) -> None:
        """A response may still be in flight, so this topic is no longer checked."""
        self._committed[partition.name] = 1 << 62, -1

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._rise(event.partition, event.hw, event.seq)

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.role == "leader":
            self._heard = True
            self._rise(event.partition, event.hw, event.seq)

    def _rise(self, name: TopicPartition, hw: int, seq: int) -> None:
        if hw > self._committed.get(name, (-1, -1))[0]:
            self._committed[name] = hw, seq

    def _logs_are_traced(self) -> bool:
        """Real Kafka never logs appends, and high watermarks only at DEBUG."""
        return self._heard or bool(self.state.logs.writer)

    def on_records_produced(self, event: e.RecordsProduced) -> None:
        if event.result != "ok" or event.base_offset < 0 or event.acks not in ("all", "-1"):
            return
        hw, seq = self._committed.get(event.partition, (0, -1))
        end = event.base_offset + event.count
        if end > hw and self._logs_are_traced():
            facts = seq, event.seq
            self.violated(AcknowledgedUncommitted(end, hw, facts=facts, partition=event.partition))
