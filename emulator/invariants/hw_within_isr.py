"""A leader's high watermark never exceeds the log end of an ISR member."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class HwBeyondMember(Violation, frozen=True):
    """`broker` is the ISR member whose log is too short."""

    hw: int
    leader: int
    isr: tuple[int, ...]
    leo: int

    sentence = (
        "leader {leader} has high watermark {hw}, but member {broker} of the ISR {isr} has"
        " records only up to {leo}"
    )


class HwWithinIsr(Invariant):
    """A leader's high watermark never passes the log end of a member of its own ISR, nor, while
    it is the leader in ZooKeeper, of a member of the ISR there (S3, S4). A member that a
    reassignment has removed does not count."""

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        logs = self.state.logs
        # Real Kafka's leader events and its followers' appends are ordered only by clocks.
        if event.role != "leader" or not logs.writer or not logs.has_appends_of(event.broker):
            return
        name, broker = event.partition, event.broker
        replica = self.state.replicas.of(name, broker)
        if replica is None:
            return
        # A leader's high watermark waits for assigned replicas only. A reassignment ends with the
        # new assignment for the leader, and then the others leave the ISR (Partition.scala@1.0.2
        # maybeIncrementLeaderHW, KafkaController.scala onPartitionReassignment).
        self._compare(name, replica.isr, replica.replicas, event, replica.seq)
        state = self.state.partitions.of(name).now
        if state is None or state.isr == replica.isr:
            return
        if (state.leader, state.leader_epoch) == (broker, replica.leader_epoch):
            self._compare(name, state.isr, replica.replicas, event, state.seq)

    def _compare(
        self,
        name: TopicPartition,
        isr: tuple[int, ...],
        assigned: tuple[int, ...] | None,
        event: e.HwAdvanced,
        seq: int,
    ) -> None:
        logs = self.state.logs.of_partition.get(name, {})
        for member in filter(self.state.logs.has_appends_of, isr):
            if assigned is not None and member not in assigned:
                continue
            log = logs.get(member)
            leo = 0 if log is None else log.leo
            if leo < event.hw:
                self.violated(
                    HwBeyondMember(
                        event.hw,
                        event.broker,
                        isr,
                        leo,
                        facts=(seq, event.seq),
                        partition=name,
                        broker=member,
                    )
                )
