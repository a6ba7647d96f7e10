"""A partition's ISR is never empty, and its leader, if it has one, is in it."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace.state.partitions import Partition, State


class LeaderInIsr(Invariant):
    """A partition's ISR is never empty, and its leader, if it has one, is in it (S6)."""

    def begin(self) -> None:
        self.facts.partitions.listen(self._written)

    def _written(self, partition: Partition, state: State) -> None:
        before = partition.states[-2].seq if len(partition.states) > 1 else -1
        if not state.isr:
            self.violated("the ISR is empty", before, state.seq, partition.name)
        elif state.leader >= 0 and state.leader not in state.isr:
            text = f"leader {state.leader} is not in the ISR {list(state.isr)}"
            self.violated(text, before, state.seq, partition.name)
