"""Every partition has a leader, who knows it, and all its replicas are in the ISR."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class ReplicasReturnToIsr(Invariant):
    """Every partition has a leader who knows its state in ZooKeeper, and all replicas are in the
    ISR (L1, L2, L7, L9)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        assignments = self.facts.znodes.assignments()
        for name, partition in self.facts.partitions.all.items():
            state = partition.now
            if state is None:
                continue
            if state.leader < 0:
                yield self.violation("it has no leader", -1, state.seq, name)
                continue
            view = self.facts.views.of(name, state.leader)
            if view is None or view.leader != state.leader or view.zk_version != state.version:
                known = "nothing" if view is None else f"v{view.zk_version}"
                text = f"its leader {state.leader} knows {known}, ZooKeeper has v{state.version}"
                seq = -1 if view is None else view.seq
                yield self.violation(text, seq, state.seq, name, state.leader)
            missing = sorted(set(assignments.get(name, ())) - set(state.isr))
            if missing:
                text = f"{missing} of its replicas are not in the ISR {list(state.isr)}"
                yield self.violation(text, -1, state.seq, name)
