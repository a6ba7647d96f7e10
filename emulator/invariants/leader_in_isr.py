"""A partition's ISR is never empty, and its leader, if it has one, is in it."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace.state.partitions import Partition, State


class EmptyIsr(Violation, frozen=True):
    sentence = "the ISR is empty"


class LeaderOutOfIsr(Violation, frozen=True):
    leader: int
    isr: tuple[int, ...]

    sentence = "leader {leader} is not in the ISR {isr}"


class LeaderInIsr(Invariant):
    """A partition's ISR is never empty, and its leader, if it has one, is in it (S6)."""

    def begin(self) -> None:
        self.state.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        before = partition.states[-2].seq if len(partition.states) > 1 else -1
        facts, name = (before, state.seq), partition.name
        if not state.isr:
            self.violated(EmptyIsr(facts=facts, partition=name))
        elif state.leader >= 0 and state.leader not in state.isr:
            self.violated(LeaderOutOfIsr(state.leader, state.isr, facts=facts, partition=name))
