"""The ISR that a leader adopts is ZooKeeper's at that version."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e


class AnotherState(Violation, frozen=True):
    """`broker` is the leader; then ZooKeeper's state at this version."""

    version: int
    isr: tuple[int, ...]
    written_leader: int
    written_isr: tuple[int, ...]

    sentence = (
        "broker {broker} has ISR {isr} as v{version}; in ZooKeeper v{version} is {written_isr},"
        " leader {written_leader}"
    )


class IsrUpdatesAreWritten(Invariant):
    """When a leader applies an ISR change, ZooKeeper has this ISR, this leader and this leader
    epoch at this version (S4)."""

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        for state in reversed(self.state.partitions.of(event.partition).states):
            if state.version > event.zk_version:
                continue
            written = state.leader, state.leader_epoch, state.isr
            if state.version == event.zk_version and written != (
                event.broker,
                event.leader_epoch,
                event.isr,
            ):
                self.violated(
                    AnotherState(
                        event.zk_version,
                        event.isr,
                        state.leader,
                        state.isr,
                        facts=(state.seq, event.seq),
                        partition=event.partition,
                        broker=event.broker,
                    )
                )
            return
