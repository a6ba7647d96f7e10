"""Every broker's metadata of a partition is ZooKeeper's state."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class ShowsDeleted(Violation, frozen=True):
    sentence = "it still shows a deleted partition"


class ShowsNothing(Violation, frozen=True):
    actual: int

    sentence = "it does not show the partition; ZooKeeper has v{actual}"


class ShowsAnother(Violation, frozen=True):
    """The versions of the state znode."""

    shown: int
    actual: int

    sentence = "it shows v{shown}, ZooKeeper has v{actual}"


class MetadataConverges(Invariant):
    """The metadata of each partition at every broker is ZooKeeper's state (L3)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        for broker, cache in sorted(self.state.metadata.entries.items()):
            for name, partition in self.state.partitions.all.items():
                state, entry = partition.now, cache.get(name)
                if state is None:
                    if entry is not None and partition.deleted:
                        yield ShowsDeleted(facts=(-1, entry[1]), partition=name, broker=broker)
                elif entry is None:
                    facts = -1, state.seq
                    yield ShowsNothing(state.version, facts=facts, partition=name, broker=broker)
                elif (entry[0].zk_version, entry[0].isr, entry[0].leader) != (
                    state.version,
                    state.isr,
                    state.leader,
                ):
                    yield ShowsAnother(
                        entry[0].zk_version,
                        state.version,
                        facts=(state.seq, entry[1]),
                        partition=name,
                        broker=broker,
                    )
