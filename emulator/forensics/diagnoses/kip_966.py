"""The ISR's last member returns without the end of its log, and becomes leader (KIP-966)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Case, Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition


class LastMemberLosesItsTail(Diagnosis):
    """Kafka does not flush before it acknowledges. A machine that crashed as the last member is
    elected with the content of its disk; followers that have more records truncate."""

    needs = ("state-change", "server")
    cure = (
        "min.insync.replicas=2, so that the last member alone acknowledges nothing; "
        "flush.messages=1 where one replica must do; eligible leader replicas are in KRaft only"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)
        self._alone: dict[TopicPartition, int] = {}
        self._restarted: set[tuple[TopicPartition, int]] = set()
        self._leads: dict[TopicPartition, e.BecomesLeader] = {}

    def _written(self, partition: Partition, state: State) -> None:
        name = partition.name
        (alone,) = state.isr if len(state.isr) == 1 else (-1,)
        if self._alone.get(name) != alone:
            self._restarted = {one for one in self._restarted if one[0] != name}
        self._alone[name] = alone
        if set(partition.replicas) <= set(state.isr):
            self._leads.pop(name, None)
            self.end(
                name, written(state), "all replicas are in the ISR again, without those records"
            )

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._restarted |= {(n, one) for n, one in self._alone.items() if one == event.broker}

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._leads.pop(event.partition, None)
        if (event.partition, event.broker) in self._restarted:
            self._leads[event.partition] = event

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        leads = self._leads.get(event.partition)
        if leads is None or event.broker == leads.broker or event.from_leo <= event.to_offset:
            return
        if leads.leo >= event.from_leo:
            return  # the leader has as many records: they differ, but no tail is missing
        name = event.partition
        case: Case = self.begin(
            name,
            leads,
            f"{name}: broker {leads.broker}, the last member of the ISR, restarted and leads from"
            f" offset {leads.leo}",
            name,
        )
        lost = event.from_leo - event.to_offset
        case.seen += (
            f"; broker {event.broker} had more and truncated {lost} record{'s'[: lost > 1]}"
        )
        case.facts.append(event.seq)
