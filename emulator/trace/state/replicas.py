"""Each broker's own view of the partitions that it hosts: role, epoch, ISR and zkVersion.

It follows from the LeaderAndIsr entries that the broker applied and its own ISR changes. A starting
broker has no view.
"""

from __future__ import annotations

from typing import Final

import msgspec

from emulator.trace import events as e
from emulator.trace.events import ROLLED_BACK
from emulator.trace.state.processes import STARTING
from emulator.trace.values import PartitionState, TopicPartition

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
OFFLINE: Final = "offline"


class HostedReplica(msgspec.Struct):
    """A replica in its broker's view since the event `seq`; `leadership_seq` is when this leader
    and epoch began. None: unknown to the broker. `proposed`: the ISR in its pending AlterIsr.
    `follower_leos`: the followers' log ends that a leader knows. `stopped`: the StopReplica that
    stopped it."""

    role: str
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    seq: int
    leadership_seq: int
    controller_epoch: int | None = None
    replicas: tuple[int, ...] | None = None
    proposed: tuple[int, ...] | None = None
    follower_leos: dict[int, int] = {}
    stopped: e.StopReplica | None = None


class Replicas:
    """All brokers' replicas."""

    def __init__(self) -> None:
        self._all: dict[TopicPartition, dict[int, HostedReplica]] = {}
        self._requested: dict[tuple[TopicPartition, int], PartitionState] = {}

    def of(self, name: TopicPartition, broker: int) -> HostedReplica | None:
        """The replica, unless a StopReplica deleted it."""
        try:
            replica = self._all[name][broker]
        except KeyError:
            return None
        stopped = replica.stopped
        return None if stopped is not None and stopped.delete else replica

    def serving(self, broker: int) -> dict[TopicPartition, HostedReplica]:
        """The replicas of a broker that were not stopped, in order."""
        return {
            name: replicas[broker]
            for name, replicas in sorted(self._all.items())
            if broker in replicas and replicas[broker].stopped is None
        }

    @property
    def brokers(self) -> set[int]:
        """Brokers that have applied a LeaderAndIsr since their last start."""
        return {broker for replicas in self._all.values() for broker in replicas}

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        if event.state == STARTING:
            for replicas in self._all.values():
                replicas.pop(event.broker, None)

    def on_leader_and_isr(self, event: e.LeaderAndIsr) -> None:
        self._requested[event.state.partition, event.broker] = event.state

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._become(event, LEADER, event.broker)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._become(event, FOLLOWER, event.leader)

    def _become(self, event: e.BecomesLeader | e.BecomesFollower, role: str, leader: int) -> None:
        name, epoch, seq = event.partition, event.leader_epoch, event.seq
        replica = HostedReplica(role, leader, epoch, (), -1, seq, seq)
        request = self._requested.get((name, event.broker))
        if request is not None and request.leader_epoch == epoch:
            replica.isr, replica.zk_version = request.isr, request.zk_version
            replica.controller_epoch = request.controller_epoch
            replica.replicas = request.replicas
        replicas = self._all.setdefault(name, {})
        before = replicas.get(event.broker)
        if before is not None and before.stopped is None:
            if (before.leader, before.leader_epoch) == (leader, epoch):
                replica.leadership_seq = before.leadership_seq
            if before.role == role == LEADER:
                # Partition.scala@2.6.3 makeLeader: only a new leader resets its followers' log
                # ends.
                replica.follower_leos = before.follower_leos
        replicas[event.broker] = replica

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        replica = self.of(event.partition, event.broker)
        if replica is not None:
            replica.isr, replica.zk_version, replica.seq = event.isr, event.zk_version, event.seq
            replica.proposed = None

    def on_alter_isr_proposed(self, event: e.AlterIsrProposed) -> None:
        replica = self.of(event.partition, event.broker)
        if replica is not None:
            replica.proposed = event.isr

    def on_alter_isr_failed(self, event: e.AlterIsrFailed) -> None:
        replica = self.of(event.partition, event.broker)
        if replica is not None and event.outcome == ROLLED_BACK:
            replica.proposed = None

    def on_follower_state_updated(self, event: e.FollowerStateUpdated) -> None:
        replica = self.of(event.partition, event.broker)
        if replica is not None:
            replica.follower_leos[event.replica] = event.leo

    def on_stop_replica(self, event: e.StopReplica) -> None:
        replica = self._all.get(event.partition, {}).get(event.broker)
        if replica is not None:
            replica.stopped = event

    def on_stop_replica_ignored(self, event: e.StopReplicaIgnored) -> None:
        replica = self._all.get(event.partition, {}).get(event.broker)
        if replica is not None:
            replica.stopped = None

    def on_log_dir_failed(self, event: e.LogDirFailed) -> None:
        for name in event.partitions:
            replica = self.of(name, event.broker)
            if replica is not None:
                replica.role = OFFLINE
                replica.follower_leos.clear()
