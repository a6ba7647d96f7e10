"""Elections are written by the controller of the latest epoch, ISR changes by the leader or, where
leaders ask it to (AlterIsr), by that controller."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State, elects

CONTROLLER_EPOCH = "/controller_epoch"


class StateHasOneWriter(Invariant):
    """A partition's leader and epoch are written by the broker that last raised
    /controller_epoch, its ISR alone by its leader, or by that controller for it (S10)."""

    def begin(self) -> None:
        self._controller, self._seq = 0, -1
        self.facts.partitions.listen(self._written)

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            if op.path == CONTROLLER_EPOCH and op.op in ("create", "setData") and not op.code:
                self._controller, self._seq = event.broker, event.seq

    def _written(self, partition: Partition, state: State) -> None:
        if state.controller_epoch < 0 or state.writer == 0 or self._controller == 0:
            return
        states = partition.states
        before = states[-2] if len(states) > 1 else None
        if before is None or elects(before, state):
            if state.writer != self._controller:
                text = f"broker {state.writer} elects, but {self._controller} is controller"
                self.violated(text, self._seq, state.seq, partition.name, state.writer)
        elif not state.by_leader and state.writer != self._controller:
            text = f"broker {state.writer} writes an ISR, but {self._controller} is controller"
            self.violated(text, self._seq, state.seq, partition.name, state.writer)
        elif state.by_leader and state.writer != before.leader:
            text = f"broker {state.writer} changes the ISR, but {before.leader} leads"
            self.violated(text, before.seq, state.seq, partition.name, state.writer)
