"""Every partition has a leader that knows it, and all its replicas are in the ISR."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.invariants.base import Invariant, Violation


class NoLeader(Violation, frozen=True):
    sentence = "it has no leader"


class LeaderKnowsNothing(Violation, frozen=True):
    actual: int

    sentence = "its leader {broker} has no state; ZooKeeper has v{actual}"


class LeaderKnowsAnother(Violation, frozen=True):
    """The versions of the state znode."""

    known: int
    actual: int

    sentence = "its leader {broker} has v{known}; ZooKeeper has v{actual}"


class MissingReplicas(Violation, frozen=True):
    missing: tuple[int, ...]
    isr: tuple[int, ...]

    sentence = "{missing} of its replicas are not in the ISR {isr}"


class ReplicasReturnToIsr(Invariant):
    """Every partition has a leader that knows its state in ZooKeeper, and all replicas are in the
    ISR (L1, L2, L7, L9)."""

    liveness = True

    def lacking(self) -> Iterator[Violation]:
        assignments = self.state.znodes.assignments()
        for name, partition in self.state.partitions.all.items():
            state = partition.now
            if state is None:
                continue
            if state.leader < 0:
                yield NoLeader(facts=(-1, state.seq), partition=name)
                continue
            replica = self.state.replicas.of(name, state.leader)
            if replica is None:
                facts = -1, state.seq
                yield LeaderKnowsNothing(
                    state.version, facts=facts, partition=name, broker=state.leader
                )
            elif replica.leader != state.leader or replica.zk_version != state.version:
                yield LeaderKnowsAnother(
                    replica.zk_version,
                    state.version,
                    facts=(replica.seq, state.seq),
                    partition=name,
                    broker=state.leader,
                )
            missing = tuple(sorted(set(assignments.get(name, ())) - set(state.isr)))
            if missing:
                yield MissingReplicas(missing, state.isr, facts=(-1, state.seq), partition=name)
