"""Every later leader, and every replica that joins the ISR, has the committed records."""

from __future__ import annotations

from typing import Literal

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.logs import missing
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition

Does = Literal["becomes leader", "joins the ISR"]


class CommittedRecordsLacking(Violation, frozen=True):
    does: Does
    lacking: int
    committed: int

    sentence = (
        "broker {broker} {does} without {lacking} of the {committed} records that were committed"
    )


class CommittedRecordsSurvive(Invariant):
    """A committed record is in the log of every later leader and of every replica that joins the
    ISR, unless an unclean election discarded it (S1, S3)."""

    def begin(self) -> None:
        self.state.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        if len(partition.states) > 1:
            before = partition.states[-2]
            for member in state.isr:
                if member not in before.isr:
                    self._hold(partition.name, member, state.seq, "joins the ISR")

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        state = self.state.partitions.of(event.partition).now
        if state is not None and state.leader_epoch == event.leader_epoch:
            self._hold(event.partition, event.broker, event.seq, "becomes leader")

    def _hold(self, name: TopicPartition, broker: int, seq: int, does: Does) -> None:
        committed = self.state.committed.of(name)
        if committed is None or not self.state.logs.has_appends_of(broker):
            return
        lacking = missing(committed.log, self.state.logs.of(name, broker))
        if lacking:
            self.violated(
                CommittedRecordsLacking(
                    does,
                    lacking,
                    committed.log.leo,
                    facts=(committed.seq, seq),
                    partition=name,
                    broker=broker,
                )
            )
