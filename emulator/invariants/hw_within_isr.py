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
    it is the leader in ZooKeeper, of a member of the ISR there (S3, S4). A member that has adopted
    a later leader epoch may have truncated, and is compared no more."""

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        logs = self.state.logs
        # Real Kafka's leader events and its followers' appends are ordered only by clocks.
        if event.role != "leader" or not logs.writer or not logs.has_appends_of(event.broker):
            return
        name, broker = event.partition, event.broker
        replica = self.state.replicas.of(name, broker)
        if replica is None:
            return
        self._compare(name, replica.isr, replica.leader_epoch, event, replica.seq)
        state = self.state.partitions.of(name).now
        if state is None or state.isr == replica.isr:
            return
        if (state.leader, state.leader_epoch) == (broker, replica.leader_epoch):
            self._compare(name, state.isr, replica.leader_epoch, event, state.seq)

    def _compare(
        self, name: TopicPartition, isr: tuple[int, ...], epoch: int, event: e.HwAdvanced, seq: int
    ) -> None:
        logs = self.state.logs.of_partition.get(name, {})
        for member in isr:
            log = logs.get(member)
            leo = 0 if log is None else log.leo
            if leo < event.hw and self._is_comparable(name, member, epoch):
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

    def _is_comparable(self, name: TopicPartition, member: int, epoch: int) -> bool:
        """Whether the trace has the member's log, in no later epoch than the leader's."""
        follower = self.state.replicas.of(name, member)
        is_later = follower is not None and follower.leader_epoch > epoch
        return self.state.logs.has_appends_of(member) and not is_later
