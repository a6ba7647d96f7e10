"""A broker joins an ISR although it is no longer an assigned replica (KAFKA-1097)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition


class UnassignedMember(Diagnosis):
    """A reassignment removes the replica. Before the broker has received StopReplica, its fetch is
    caught up, and the leader adds it to the ISR."""

    needs = ("state-change", "server")
    cure = (
        "restart the leader, or move the leadership: the next one knows the assignment; fixed in"
        " 2.0, where a leader adds only replicas that are assigned"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)
        self._assigned: dict[tuple[int, TopicPartition], tuple[int, ...]] = {}

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        if event.state.replicas:
            self._assigned[event.broker, event.state.partition] = event.state.replicas

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        assigned = self._assigned.get((event.broker, event.partition))
        strangers = set(event.to_isr) - set(event.from_isr) - set(assigned or event.to_isr)
        for broker in sorted(strangers):
            self.begin(
                (event.partition, broker),
                event,
                f"leader {event.broker} adds broker {broker} to the ISR of {event.partition}, whose"
                f" replicas are {list(assigned or ())}",
                event.partition,
                broker=broker,
            )

    def _written(self, partition: Partition, state: State) -> None:
        mine = [key for key, case in self.open_cases.items() if partition.name in case.partitions]
        for key in mine:
            assert isinstance(key, tuple)
            case = self.open_cases[key]
            if key[1] not in state.isr and state.from_us > case.from_us:
                self.end(key, written(state), "the ISR is without it")
