"""Leader epochs and controller epochs never decrease, in ZooKeeper or at a broker."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.state.partitions import Partition, State
from emulator.trace.values import TopicPartition

CONTROLLER_EPOCH = "/controller_epoch"


class ControllerEpochZnodeDecreases(Violation, frozen=True):
    before: int
    after: int

    sentence = "/controller_epoch goes from {before} to {after}"


class LeaderEpochDecreases(Violation, frozen=True):
    before: int
    after: int

    sentence = "leader epoch {before} becomes {after}"


class ControllerEpochDecreases(Violation, frozen=True):
    before: int
    after: int

    sentence = "controller epoch {before} becomes {after}"


class OldEpochObeyed(Violation, frozen=True):
    had: int
    obeyed: int

    sentence = "broker {broker} had leader epoch {had} and obeys one of {obeyed}"


class EpochsNeverDecrease(Invariant):
    """The leader and controller epochs of a state znode never decrease, nor does
    /controller_epoch; each LeaderAndIsr that a broker obeys raises its leader epoch (S9, S12)."""

    def begin(self) -> None:
        self.state.partitions.listen(self._written)
        self._at: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        self._controller, self._raised = -1, -1

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        for op in event.ops or (event,):
            if op.path != CONTROLLER_EPOCH or op.op not in ("create", "setData") or op.code:
                continue
            epoch = int(op.data) if op.data and op.data.isdigit() else -1
            if -1 < epoch < self._controller:
                facts = self._raised, event.seq
                self.violated(ControllerEpochZnodeDecreases(self._controller, epoch, facts=facts))
            self._controller, self._raised = epoch, event.seq

    def _written(self, partition: Partition, state: State) -> None:
        if len(partition.states) < 2:
            return
        before = partition.states[-2]
        facts, name = (before.seq, state.seq), partition.name
        if state.leader_epoch < before.leader_epoch:
            was, becomes = before.leader_epoch, state.leader_epoch
            self.violated(LeaderEpochDecreases(was, becomes, facts=facts, partition=name))
        if -1 < state.controller_epoch < before.controller_epoch:
            was, becomes = before.controller_epoch, state.controller_epoch
            self.violated(ControllerEpochDecreases(was, becomes, facts=facts, partition=name))

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
            self.violated(
                OldEpochObeyed(
                    epoch,
                    event.leader_epoch,
                    facts=(seq, event.seq),
                    partition=event.partition,
                    broker=event.broker,
                )
            )
        epochs[event.partition] = event.leader_epoch, event.seq
