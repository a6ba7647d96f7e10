"""Every replica's log without its records: the leader epoch of each offset.

A leader epoch has one leader, which never removes what it appended in it, so (epoch, offset)
identifies a record. A log is a list of pieces `[base, end)`, each with its epoch. Two logs hold the
same record at an offset if and only if they have the same epoch there. Knows nothing of
acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.trace import events as e
from emulator.trace.state.replica_log import Piece, ReplicaLog
from emulator.trace.values import TopicPartition


class Logs:
    """All replicas' logs, by partition and broker."""

    def __init__(self) -> None:
        self.of_partition: dict[TopicPartition, dict[int, ReplicaLog]] = {}
        self.writer: dict[TopicPartition, int] = {}
        self.removed = ReplicaLog()
        """The records removed by the last truncation."""
        self.truncations = 0
        self.truncated = 0
        self._without_appends: dict[int, None] = {}
        self._cached_partition: TopicPartition | None = None
        self._cached_broker = 0
        self._cached_log = ReplicaLog()

    def has_appends_of(self, broker: int) -> bool:
        """Whether the trace contains this broker's appends. Real Kafka logs roles and high
        watermarks but no appends, so `of` is incomplete for such a broker."""
        return broker not in self._without_appends

    def of(self, name: TopicPartition, broker: int) -> ReplicaLog:
        """The replica's log; empty if unknown. The last one is cached, because several listeners
        read the same log in turn."""
        if name is self._cached_partition and broker == self._cached_broker:
            return self._cached_log
        logs = self.of_partition.get(name)
        if logs is None:
            logs = self.of_partition[name] = {}
        log = logs.get(broker)
        if log is None:
            log = logs[broker] = ReplicaLog()
        self._cached_partition, self._cached_broker, self._cached_log = name, broker, log
        return log

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        name, base = event.partition, event.base_offset
        try:
            log = self.of_partition[name][event.broker]
        except KeyError:
            log = self.of(name, event.broker)
        if log.pieces and log.pieces[-1].end > base:
            log.truncate(base)
        if event.role == "leader":
            self.writer[name] = event.broker
        pieces, epoch = log.pieces, event.leader_epoch
        if event.epochs:
            _append_runs(log, event)
        elif pieces and pieces[-1].epoch == epoch and pieces[-1].end == base:
            pieces[-1].end = event.leo  # the usual case
        else:
            log.append(base, event.leo, epoch)

    def on_log_loaded(self, event: e.LogLoaded) -> None:
        """The files say what the log has. The trace lacks what a killed process wrote last. Records
        behind the end of the files are lost, which `_opened` takes into account."""
        known, log = (
            self.of(event.partition, event.broker),
            ReplicaLog(start=event.log_start_offset),
        )
        if event.epochs:  # an empty log has none
            _append_runs(log, event)
        log.pieces += [*known.between(event.leo, known.leo)][::-1]
        known.pieces, known.start = log.pieces, log.start

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        self.truncations += event.from_leo > event.to_offset
        self.truncated += max(0, event.from_leo - event.to_offset)
        log = self.of(event.partition, event.broker)
        self.removed = ReplicaLog([*log.between(event.to_offset, event.from_leo)][::-1])
        log.truncate(event.to_offset)

    def on_log_start_moved(self, event: e.LogStartMoved) -> None:
        log = self.of(event.partition, event.broker)
        log.delete_before(event.log_start_offset)
        log.hw = event.hw

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._opened(event, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._opened(event, event.leader)

    def _opened(self, event: e.BecomesLeader | e.BecomesFollower, leader: int) -> None:
        """The log as the broker loads it at start. A log that was deleted, or lost records in a
        crash, is shorter than the last known one."""
        if not event.thread:  # from Kafka's own log, whose pattern has no thread
            self._without_appends[event.broker] = None
        log = self.of(event.partition, event.broker)
        log.leader, log.hw = leader, event.hw
        log.truncate(event.leo)

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        self.of(event.partition, event.broker).hw = event.hw


def _append_runs(log: ReplicaLog, event: e.RecordsAppended | e.LogLoaded) -> None:
    """Add records of several leader epochs."""
    ends = (*(run.base_offset for run in event.epochs[1:]), event.leo)
    for run, end in zip(event.epochs, ends, strict=True):
        log.append(run.base_offset, end, run.leader_epoch)


def missing(promised: ReplicaLog, log: ReplicaLog) -> int:
    """The number of records of `promised` that the log lacks."""
    return sum(_absent(piece, log) for piece in promised.pieces)


def _absent(piece: Piece, log: ReplicaLog) -> int:
    return piece.end - piece.base - sum(same.end - same.base for same in _same(piece, log))


def _same(piece: Piece, log: ReplicaLog) -> Iterator[Piece]:
    return (one for one in log.between(piece.base, piece.end) if one.epoch == piece.epoch)


def shared(one: ReplicaLog, other: ReplicaLog) -> ReplicaLog:
    """The records that both logs have."""
    return ReplicaLog([same for piece in one.pieces for same in [*_same(piece, other)][::-1]])
