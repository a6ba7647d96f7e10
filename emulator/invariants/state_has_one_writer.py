"""The controller of the latest epoch writes elections. ISR changes are written by the leader or,
with AlterIsr, by that controller."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State, elects

CONTROLLER_EPOCH = "/controller_epoch"


class ElectsUncontrolled(Violation, frozen=True):
    controller: int

    sentence = "broker {broker} elects, but {controller} is controller"


class WritesUncontrolled(Violation, frozen=True):
    controller: int

    sentence = "broker {broker} writes an ISR, but {controller} is controller"


class ChangesAnothersIsr(Violation, frozen=True):
    leader: int

    sentence = "broker {broker} changes the ISR, but {leader} leads"


class StateHasOneWriter(Invariant):
    """The leader and epoch of a partition are written only by the broker that last raised
    /controller_epoch; the ISR is written by the leader, or by that controller for it (S10)."""

    def begin(self) -> None:
        self._controller, self._seq = 0, -1
        self.state.partitions.listen(self._written)

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            if op.path == CONTROLLER_EPOCH and op.op in ("create", "setData") and not op.code:
                self._controller, self._seq = event.broker, event.seq

    def _written(self, partition: Partition, state: State) -> None:
        if state.controller_epoch < 0 or state.by == 0 or self._controller == 0:
            return
        states = partition.states
        before = states[-2] if len(states) > 1 else None
        name, writer = partition.name, state.by
        facts = self._seq, state.seq
        if before is None or elects(before, state):
            if writer != self._controller:
                self.violated(
                    ElectsUncontrolled(self._controller, facts=facts, partition=name, broker=writer)
                )
        elif not state.by_leader and writer != self._controller:
            self.violated(
                WritesUncontrolled(self._controller, facts=facts, partition=name, broker=writer)
            )
        elif state.by_leader and writer != before.leader:
            facts = before.seq, state.seq
            self.violated(
                ChangesAnothersIsr(before.leader, facts=facts, partition=name, broker=writer)
            )
