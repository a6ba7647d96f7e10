"""An unclean election: the new leader was not in the ISR (KAFKA-1555)."""

from __future__ import annotations

from emulator.forensics.diagnoses.base import Diagnosis, written
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition


class UncleanElection(Diagnosis):
    """The ISR shrank to the leader alone, which acknowledged records and was lost. The elected
    broker lacks the records that it had not fetched; replicas that have them truncate."""

    needs = ("state-change",)
    cure = (
        "unclean.leader.election.enable=false (the default from 0.11 on), and"
        " min.insync.replicas=2 for topics whose producers use acks=all"
    )

    def prepare(self) -> None:
        self.state.partitions.listen(self._written)
        self._before: dict[TopicPartition, tuple[int, ...]] = {}
        self._isr: dict[TopicPartition, tuple[int, ...]] = {}

    def _written(self, partition: Partition, state: State) -> None:
        name = partition.name
        isr, self._isr[name] = self._isr.get(name, ()), state.isr
        if state.version == 0:
            self.forget(name)
        elif partition.is_unclean and isr:
            old = ",".join(map(str, isr))
            case = self.begin(
                name,
                written(state),
                f"{name}: broker {state.leader} was elected and is not in the ISR [{old}]: what"
                f" only that had is lost",
                name,
                broker=state.leader,
            )
            if len(partition.states) > 1:
                case.facts.insert(0, partition.states[-2].seq)
            self._before[name] = isr
        elif name in self.open_cases and set(self._before[name]) <= set(state.isr):
            who = ",".join(map(str, self._before[name]))
            self.end(name, written(state), f"[{who}] is in the ISR again, without those records")

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        case = self.open_cases.get(event.partition)
        if case is not None and event.broker in self._before[event.partition]:
            case.facts.append(event.seq)
            if event.from_leo > event.to_offset:
                lost = event.from_leo - event.to_offset
                case.seen += f"; broker {event.broker} truncated {lost} record{'s'[: lost > 1]}"
