"""Leader epochs and controller epochs never decrease, in ZooKeeper or at a broker."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition

CONTROLLER_EPOCH = "/controller_epoch"


class EpochsNeverDecrease(Invariant):
    """Leader and controller epochs never decrease in a state znode, nor /controller_epoch, and each
    LeaderAndIsr that a broker obeys raises its leader epoch (S9, S12)."""

    def begin(self) -> None:
        self.facts.partitions.listen(self._written)
        self._at: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        self._controller, self._raised = -1, -1

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            if op.path != CONTROLLER_EPOCH or op.op not in ("create", "setData") or op.code:
                continue
            epoch = int(op.data) if op.data and op.data.isdigit() else -1
            if -1 < epoch < self._controller:
                text = f"/controller_epoch goes from {self._controller} to {epoch}"
                self.violated(text, self._raised, event.seq)
            self._controller, self._raised = epoch, event.seq

    def _written(self, partition: Partition, state: State) -> None:
        if len(partition.states) < 2:
            return
        before = partition.states[-2]
        if state.leader_epoch < before.leader_epoch:
            text = f"leader epoch {before.leader_epoch} becomes {state.leader_epoch}"
            self.violated(text, before.seq, state.seq, partition.name)
        if -1 < state.controller_epoch < before.controller_epoch:
            text = f"controller epoch {before.controller_epoch} becomes {state.controller_epoch}"
            self.violated(text, before.seq, state.seq, partition.name)

    def on_broker_starting(self, event: e.BrokerStarting) -> None:
        self._at.pop(event.broker, None)

    def on_stop_replica(self, event: e.StopReplica) -> None:
        if event.delete:
            self._at.get(event.broker, {}).pop(event.partition, None)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._obeyed(event)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._obeyed(event)

    def _obeyed(self, event: e.BecomesLeader | e.BecomesFollower) -> None:
        epochs = self._at.setdefault(event.broker, {})
        epoch, seq = epochs.get(event.partition, (-1, -1))
        if event.leader_epoch <= epoch:
            text = f"broker {event.broker} was in leader epoch {epoch} and obeys one of "
            text += str(event.leader_epoch)
            self.violated(text, seq, event.seq, event.partition, event.broker)
        epochs[event.partition] = event.leader_epoch, event.seq
