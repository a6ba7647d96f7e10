"""No replica truncates committed records below its own high watermark that its leader has."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.logs import missing, shared
from emulator.trace.state.replica_log import ReplicaLog


class CommittedRecordsTruncated(Violation, frozen=True):
    """`removed`: the number of committed records; `hw`: the replica's high watermark."""

    removed: int
    leader: int
    hw: int
    to_offset: int

    sentence = (
        "broker {broker} truncates to {to_offset}, below its high watermark {hw}: {removed}"
        " committed records that its leader {leader} has"
    )


class TruncationsSpareTheCommitted(Invariant):
    """A replica removes no committed record below its own high watermark that its leader has
    (S1)."""

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        """If the leader lacks the record too, `committed records survive` reports it."""
        logs, name = self.state.logs, event.partition
        committed = self.state.committed.of(name)
        # A truncation does not change the high watermark in the trace state.
        replica = logs.of(name, event.broker)
        leader, hw = replica.leader, replica.hw
        if committed is None or event.to_offset >= hw:
            return
        below_hw = ReplicaLog([*logs.removed.between(event.to_offset, hw)][::-1])
        lost = shared(shared(below_hw, committed.log), logs.of(name, leader))
        removed = missing(lost, ReplicaLog())
        if removed:
            self.violated(
                CommittedRecordsTruncated(
                    removed,
                    leader,
                    hw,
                    event.to_offset,
                    facts=(committed.seq, event.seq),
                    partition=name,
                    broker=event.broker,
                )
            )
