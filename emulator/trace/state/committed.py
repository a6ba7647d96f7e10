"""The committed records: those that were once below a leader's high watermark."""

from __future__ import annotations

import msgspec

from emulator.trace import events as e
from emulator.trace.state.logs import Logs
from emulator.trace.state.partitions import Partition, Partitions, State
from emulator.trace.state.replica_log import ReplicaLog
from emulator.trace.state.replicas import Replicas
from emulator.trace.values import TopicPartition


class CommittedLog(msgspec.Struct):
    """The records below the highest high watermark that a leader had, and the event that set it."""

    log: ReplicaLog
    seq: int = -1


class Committed:
    """The records that must not be lost, by partition. An unclean election discards them: from then
    on only its leader's log counts, not what deposed leaders still commit."""

    def __init__(self, partitions: Partitions, logs: Logs, replicas: Replicas) -> None:
        self._logs, self._replicas = logs, replicas
        self.all: dict[TopicPartition, CommittedLog] = {}
        self._unclean_epoch: dict[TopicPartition, int] = {}
        partitions.listen(self._written)
        partitions.listen_to_deletions(self._deleted)

    def of(self, name: TopicPartition) -> CommittedLog | None:
        return self.all.get(name)

    def _deleted(self, partition: Partition) -> None:
        self.all.pop(partition.name, None)
        self._unclean_epoch.pop(partition.name, None)

    def _written(self, partition: Partition, state: State) -> None:
        if partition.is_unclean:
            self.all.pop(partition.name, None)
            self._unclean_epoch[partition.name] = state.leader_epoch

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        name = event.partition
        if event.role != "leader" or not self._logs.has_appends_of(event.broker):
            return
        if self._unclean_epoch and self.is_deposed(name, event.broker):
            return
        committed = self.all.get(name)
        if committed is None:
            committed = self.all[name] = CommittedLog(ReplicaLog())
        if event.hw > committed.log.leo:
            committed.log.append_from(self._logs.of(name, event.broker), event.hw)
            committed.seq = event.seq

    def on_log_start_moved(self, event: e.LogStartMoved) -> None:
        """What one replica has deleted on request, or by its retention, need not last."""
        committed = self.all.get(event.partition)
        if committed is not None:
            committed.log.delete_before(max(committed.log.start, event.log_start_offset))

    def is_deposed(self, name: TopicPartition, broker: int) -> bool:
        """Whether an unclean election has replaced this leader, even if it does not know it yet."""
        unclean_epoch = self._unclean_epoch.get(name)
        if unclean_epoch is None:
            return False
        replica = self._replicas.of(name, broker)
        return replica is None or replica.leader_epoch < unclean_epoch
