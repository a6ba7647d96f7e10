"""What a leader takes for its ISR is what ZooKeeper has at that version."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e


class IsrUpdatesAreWritten(Invariant):
    """When a leader takes over an ISR change, ZooKeeper has this ISR, this leader and this epoch at
    this version (S4)."""

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        for state in reversed(self.facts.partitions.of(event.partition).states):
            if state.version > event.zk_version:
                continue
            there = state.leader, state.leader_epoch, state.isr
            if state.version == event.zk_version and there != (
                event.broker,
                event.leader_epoch,
                event.isr,
            ):
                text = f"broker {event.broker} takes v{event.zk_version} for its ISR "
                text += f"{list(event.isr)}, which is leader {state.leader}'s {list(state.isr)}"
                self.violated(text, state.seq, event.seq, event.partition, event.broker)
            return
