"""The controller's partition states are those in ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class UnknownToController(Violation, frozen=True):
    sentence = "the controller has no state for it"


class ControllerDiffers(Violation, frozen=True):
    """`broker` is the controller; the versions are of the state znode."""

    known: int
    actual: int

    sentence = "the controller has v{known}, ZooKeeper v{actual}"


class ControllerKnowsStates(Invariant):
    """The controller's state of each partition is ZooKeeper's (L2, L3)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        cache = self.state.controller.states
        for name, partition in self.state.partitions.all.items():
            state, known = partition.now, cache.get(name)
            if state is None:
                continue
            if known is None:
                facts = self.state.controller.seq, state.seq
                yield UnknownToController(facts=facts, partition=name)
            elif (known.leader, known.leader_epoch, known.isr, known.zk_version) != (
                state.leader,
                state.leader_epoch,
                state.isr,
                state.version,
            ):
                yield ControllerDiffers(
                    known.zk_version,
                    state.version,
                    facts=(state.seq, known.seq),
                    partition=name,
                    broker=known.broker,
                )
