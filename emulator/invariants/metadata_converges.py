"""What every broker tells clients of a partition is what ZooKeeper has."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class MetadataConverges(Invariant):
    """What every broker tells clients of a partition is what ZooKeeper has (L3)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        for broker, cache in sorted(self.facts.caches.metadata.items()):
            for name, partition in self.facts.partitions.all.items():
                state, entry = partition.now, cache.get(name)
                if state is None:
                    if entry is not None and partition.deleted:
                        text = "it shows a partition that was deleted"
                        yield self.violation(text, -1, entry[1], name, broker)
                elif entry is None:
                    text = f"it does not show it; ZooKeeper has v{state.version}"
                    yield self.violation(text, -1, state.seq, name, broker)
                elif (entry[0].zk_version, entry[0].isr, entry[0].leader) != (
                    state.version,
                    state.isr,
                    state.leader,
                ):
                    text = f"it shows v{entry[0].zk_version}, ZooKeeper has v{state.version}"
                    yield self.violation(text, state.seq, entry[1], name, broker)
