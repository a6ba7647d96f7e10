"""What the controller knows of a partition is what ZooKeeper has."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class ControllerKnowsStates(Invariant):
    """What the controller knows of a partition is what ZooKeeper has (L2, L3)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        cache = self.facts.caches.states
        for name, partition in self.facts.partitions.all.items():
            state, known = partition.now, cache.get(name)
            if state is None:
                continue
            if known is None:
                text = "the controller does not know it"
                yield self.violation(text, self.facts.caches.elected_seq, state.seq, name)
            elif (known.leader, known.leader_epoch, known.isr, known.zk_version) != (
                state.leader,
                state.leader_epoch,
                state.isr,
                state.version,
            ):
                text = f"the controller has v{known.zk_version}, ZooKeeper v{state.version}"
                yield self.violation(text, state.seq, known.seq, name, known.broker)
