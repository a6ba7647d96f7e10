"""What every replica's log holds, without its records: which leader's term each offset came from.

Within one term of one leader (from becoming leader, or a truncation, to the next) an offset names
one record. So a log is a few pieces `[base, end)` with the term that they came from; a follower's
append copies the pieces of its leader. Two logs hold the same record at an offset if and only if
they have the same term there. Knows nothing of acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.trace import events as e
from emulator.trace.values import TopicPartition

Term = tuple[int, int]
"""(broker, how many terms it had before)."""


class Piece(msgspec.Struct):
    """Offsets [base, end) that were written in one term."""

    base: int
    end: int
    term: Term


class ReplicaLog(msgspec.Struct):
    """One replica's log: pieces in order without gaps, its high watermark, and whom it follows."""

    pieces: list[Piece] = []
    hw: int = 0
    leader: int = -1

    @property
    def leo(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    def truncate(self, to_offset: int) -> None:
        while self.pieces and self.pieces[-1].base >= to_offset:
            self.pieces.pop()
        if self.pieces and self.pieces[-1].end > to_offset:
            self.pieces[-1].end = to_offset

    def append(self, piece: Piece) -> None:
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.term == piece.term and last.end == piece.base:
            last.end = piece.end
        elif piece.end > piece.base:
            self.pieces.append(piece)

    def between(self, base: int, end: int) -> Iterator[Piece]:
        """The pieces of [base, end), cut to it."""
        for piece in reversed(self.pieces):
            if piece.end <= base:
                return
            if piece.base < end:
                yield Piece(max(base, piece.base), min(end, piece.end), piece.term)


class Logs:
    """All replicas' logs, by partition and broker."""

    def __init__(self) -> None:
        self.of_partition: dict[TopicPartition, dict[int, ReplicaLog]] = {}
        self.writer: dict[TopicPartition, int] = {}
        self.truncations = 0
        self._terms: dict[tuple[TopicPartition, int], int] = {}

    def of(self, name: TopicPartition, broker: int) -> ReplicaLog:
        """The replica's log; an empty one if nothing is known of it."""
        logs = self.of_partition.get(name)
        if logs is None:
            logs = self.of_partition[name] = {}
        log = logs.get(broker)
        if log is None:
            log = logs[broker] = ReplicaLog()
        return log

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        log = self.of(event.partition, event.broker)
        if log.leo > event.base_offset:
            log.truncate(event.base_offset)
        if event.role == "leader":
            self.writer[event.partition] = event.broker
            self._write(log, event)
        else:
            self._copy(log, event)

    def _write(self, log: ReplicaLog, event: e.RecordsAppended) -> None:
        term = event.broker, self._terms.get((event.partition, event.broker), 0)
        log.append(Piece(event.base_offset, event.leo, term))

    def _copy(self, log: ReplicaLog, event: e.RecordsAppended) -> None:
        leader = log.leader if log.leader >= 0 else self.writer.get(event.partition, -1)
        source = self.of(event.partition, leader)
        for piece in reversed(list(source.between(event.base_offset, event.leo))):
            log.append(piece)

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        self.truncations += event.from_leo > event.to_offset
        self.of(event.partition, event.broker).truncate(event.to_offset)
        self._new_term(event.partition, event.broker)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        log = self.of(event.partition, event.broker)
        log.leader, log.hw = event.broker, event.hw
        self._new_term(event.partition, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        log = self.of(event.partition, event.broker)
        log.leader, log.hw = event.leader, event.hw

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        self.of(event.partition, event.broker).hw = event.hw

    def _new_term(self, name: TopicPartition, broker: int) -> None:
        self._terms[name, broker] = self._terms.get((name, broker), 0) + 1
