"""The states of replicas, and the removal of replicas from the ISR when their broker is gone.

Source: controller/ReplicaStateMachine.scala@2.6.3; spec §6.8.
"""

from __future__ import annotations

from collections.abc import Sequence

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import ControllerContext, ReplicaState, put_state
from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.leader_selection import NO_LEADER
from emulator.kafka.controller.partition_state_machine import PartitionStateMachine
from emulator.kafka.controller.ports import Host
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.controller.states import read_states
from emulator.kafka.model.config import unclean_election
from emulator.kafka.profiles.guards.controller import (
    DEAD_REPLICAS_ARE_INELIGIBLE,
    LAST_ISR_MEMBER_STAYS,
    OFFLINE_REPLICAS_AT_FAILOVER,
)
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError

_S = ReplicaState
VALID_PREVIOUS = {
    _S.NON_EXISTENT: (_S.DELETION_SUCCESSFUL,),
    _S.NEW: (_S.NON_EXISTENT,),
    _S.ONLINE: (_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE),
    _S.OFFLINE: (_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE),
    _S.DELETION_STARTED: (_S.OFFLINE,),
    _S.DELETION_SUCCESSFUL: (_S.DELETION_STARTED,),
    _S.DELETION_INELIGIBLE: (_S.OFFLINE, _S.DELETION_STARTED),
}


def isr_without(state: LeaderAndIsr, replica: int, *, keep_last: bool = True) -> LeaderAndIsr:
    """The state after `replica` went offline: no leader if it led, leader epoch + 1. A single ISR
    member stays."""
    leader = NO_LEADER if state.leader == replica else state.leader
    # The last member stays although it is gone: with an empty ISR no clean election would be
    # possible any more.
    stays = keep_last and len(state.isr) == 1
    isr = state.isr if stays else tuple(b for b in state.isr if b != replica)
    return LeaderAndIsr(leader, state.leader_epoch + 1, isr, state.zk_version)


def without(assignment: ReplicaAssignment, replica: int) -> ReplicaAssignment:
    """The assignment without one replica (removeReplica)."""
    return ReplicaAssignment(
        tuple(b for b in assignment.replicas if b != replica),
        tuple(b for b in assignment.adding_replicas if b != replica),
        tuple(b for b in assignment.removing_replicas if b != replica),
    )


class ReplicaStateMachine:
    """ZkReplicaStateMachine."""

    def __init__(
        self,
        host: Host,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        batch: ControllerBrokerRequestBatch,
        partitions: PartitionStateMachine,
    ) -> None:
        self._host, self._context = host, context
        self._zk_client, self._batch, self._partitions = zk_client, batch, partitions

    async def _keeps_last(self, partition: TopicPartition, state: LeaderAndIsr) -> bool:
        """Before 1.1 the last member stays only if unclean elections of the topic are forbidden
        (KAFKA-5642). Its configuration is read only where this matters."""
        if LAST_ISR_MEMBER_STAYS in self._host.guards or len(state.isr) > 1:
            return True
        config = (await self._zk_client.get_topic_configs([partition.topic]))[partition.topic]
        if isinstance(config, ZooKeeperError):
            raise config
        default = self._host.config.unclean_leader_election_enable
        return not unclean_election(config, default=default)

    async def startup(self) -> None:
        """Bring live replicas online, then take the others offline (KAFKA-3143)."""
        online, offline = self._context.online_and_offline_replicas()
        for replica in online:
            self._context.replica_states[replica] = _S.ONLINE
        for replica in offline:
            # initializeReplicaState: in case the topic is under deletion. From this state a replica
            # can go online or offline but cannot be deleted.
            self._context.replica_states[replica] = _S.DELETION_INELIGIBLE
        await self.handle_state_changes(online, _S.ONLINE)
        # This precedes the partition state machine: if the leader died with the old controller, the
        # leader epoch rises twice, for leader -1 and for the new leader.
        if OFFLINE_REPLICAS_AT_FAILOVER in self._host.guards:
            await self.handle_state_changes(offline, _S.OFFLINE)

    def _is_valid(self, replica: PartitionAndReplica, target: ReplicaState) -> bool:
        before = self._context.replica_state(replica)
        if target is _S.DELETION_INELIGIBLE and before is _S.OFFLINE:
            return DEAD_REPLICAS_ARE_INELIGIBLE in self._host.guards
        return before in VALID_PREVIOUS[target]

    async def handle_state_changes(
        self, replicas: Sequence[PartitionAndReplica], target: ReplicaState
    ) -> None:
        """Move replicas to `target`, grouped by broker, and send the resulting requests in one
        batch; invalid transitions are skipped."""
        if not replicas:
            return
        try:
            # As with partitions, a failed transition leaves its requests in the batch.
            self._batch.new_batch()
            for broker, group in self._groups(replicas):
                valid = [r for r in group if self._is_valid(r, target)]
                if target is _S.OFFLINE:
                    await self._take_offline(broker, valid)
                else:
                    await self._do_handle_state_changes(broker, valid, target)
            await self._batch.send(self._context.epoch)
        except (ZooKeeperError, ControllerFailure) as error:
            # ControllerMoved passes: it ends the whole event, and this controller resigns.
            self._host.failed(f"replicas to {target.value}", error)

    def _groups(
        self, replicas: Sequence[PartitionAndReplica]
    ) -> list[tuple[int, list[PartitionAndReplica]]]:
        """The replicas by broker, in the order of Scala's groupBy. Up to 1.0 each is alone: it is
        read and written before the next one, in the order of an immutable Set
        (ReplicaStateMachine.scala@1.0.2 handleStateChanges)."""
        if self._host.profile.zookeeper_client == "zkclient":
            members = self._context.order.replicas_as_set(replicas)
            return [(member.replica, [member]) for member in members]
        groups: dict[int, list[PartitionAndReplica]] = {}
        for replica in replicas:
            groups.setdefault(replica.replica, []).append(replica)
        return [(broker, groups[broker]) for broker in self._context.order.grouped(groups)]

    async def _do_handle_state_changes(
        self, broker: int, replicas: Sequence[PartitionAndReplica], target: ReplicaState
    ) -> None:
        """Change the states of one broker's replicas (doHandleStateChanges)."""
        context, batch = self._context, self._batch
        for replica in replicas:
            partition = replica.partition
            state = context.leadership.get(partition)
            if target is _S.NEW and self._host.profile.zookeeper_client == "zkclient":
                # Up to 1.0 a new replica gets the state from ZooKeeper
                # (getLeaderIsrAndEpochForPartition). Until 2.4 the cache lags behind it after a
                # raised leader epoch.
                read = await self._zk_client.get_topic_partition_states([partition])
                state = read.get(partition)
            if target is _S.NEW:
                # A new replica gets LeaderAndIsr at once if the partition has a leader. In a new
                # partition it waits until the partition comes online.
                if state is not None:
                    if state.leader_and_isr.leader == broker:
                        # A leader cannot be a new replica of its own partition: Kafka fails this
                        # replica's change.
                        continue
                    self._add_leader_and_isr([broker], partition, state, is_new=True)
            elif target is _S.ONLINE:
                assignment = context.assignment(partition)
                if context.replica_state(replica) is not _S.NEW:
                    # The cached state may be behind ZooKeeper. A leader that already has this epoch
                    # ignores the request, so an old ISR version does no harm (H12).
                    if state is not None:
                        self._add_leader_and_isr([broker], partition, state, is_new=False)
                elif broker not in assignment.replicas:
                    context.assignments[partition] = ReplicaAssignment(
                        (*assignment.replicas, broker),
                        assignment.adding_replicas,
                        assignment.removing_replicas,
                    )
            elif target is _S.DELETION_STARTED:
                batch.add_stop_replica([broker], partition, delete=True)
            elif target is _S.NON_EXISTENT:
                # A deleted replica leaves the assignment.
                context.assignments[partition] = without(context.assignment(partition), broker)
            self._move(replica, target)

    async def _take_offline(self, broker: int, replicas: Sequence[PartitionAndReplica]) -> None:
        """Stop the replicas, remove them from the ISR, send the new state to the other replicas."""
        context = self._context
        for replica in replicas:
            # The StopReplica is added before the ISR removal raises the leader epoch. From 2.6 to
            # 3.4 a broker ignores it because its epoch is not greater than the broker's (spec
            # §6.11).
            self._batch.add_stop_replica([broker], replica.partition, delete=False)
        # removeReplicasFromIsr: a write that fails with BADVERSION is repeated at once.
        updated: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        left = [r.partition for r in replicas if r.partition in context.leadership]
        while left:
            finished, left = await self._do_remove_replicas_from_isr(broker, left)
            updated.update(finished)
        for partition, state in updated.items():
            # For a topic under deletion no replica needs the new leader or ISR.
            if partition.topic not in context.topics_to_be_deleted:
                others = [b for b in context.replicas(partition) if b != broker]
                self._add_leader_and_isr(others, partition, state, is_new=False)
            self._move(PartitionAndReplica(partition, broker), _S.OFFLINE)
        # Without leadership information there is no ISR to change: brokers only get an
        # UpdateMetadata.
        for replica in replicas:
            if replica.partition not in context.leadership:
                self._batch.add_update_metadata(context.live_or_shutting_down, [replica.partition])
                self._move(replica, _S.OFFLINE)

    def _move(self, replica: PartitionAndReplica, target: ReplicaState) -> None:
        before = put_state(self._context.replica_states, replica, target, _S.NON_EXISTENT)
        self._host.emit(
            events.ReplicaStateChanged,
            self._context.epoch,
            replica.partition,
            replica.replica,
            before.value,
            target.value,
        )

    def _add_leader_and_isr(
        self,
        brokers: Sequence[int],
        partition: TopicPartition,
        state: LeaderIsrAndControllerEpoch,
        *,
        is_new: bool,
    ) -> None:
        assignment = self._context.assignment(partition)
        self._batch.add_leader_and_isr(brokers, partition, state, assignment, is_new=is_new)

    async def _do_remove_replicas_from_isr(
        self, broker: int, partitions: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, LeaderIsrAndControllerEpoch], list[TopicPartition]]:
        """Read the states, remove the replica from each ISR, write."""
        states = (await read_states(self._zk_client, partitions, self._context.epoch)).states
        order = self._context.order
        members = [p for p in order.selected(states) if broker in states[p].isr]
        writes = {
            p: isr_without(states[p], broker, keep_last=await self._keeps_last(p, states[p]))
            for p in order.filtered(members, states)
        }
        kernel = self._host.kernel
        # A deletion takes less time for this than a controlled shutdown (`worlds/latency`).
        of_deletion = any(p.topic in self._context.topics_to_be_deleted for p in writes)
        if writes:
            await kernel.checkpoint("deletion.leave_isr" if of_deletion else "leave_isr")
        written = await self._zk_client.update_leader_and_isr(
            writes, self._context.epoch, self._context.epoch_zk_version
        )
        if writes:
            await kernel.checkpoint("deletion.left_isr" if of_deletion else "left_isr")
        # Where the replica is not in the ISR nothing is written, but the cached state gets this
        # controller's epoch.
        finished = {p: s for p, s in states.items() if p not in writes}
        finished |= {p: r for p, r in written.finished.items() if isinstance(r, LeaderAndIsr)}
        updated = {}
        for partition, leader_and_isr in finished.items():
            state = LeaderIsrAndControllerEpoch(leader_and_isr, self._context.epoch)
            self._partitions.cache(partition, state, "replica removed")
            updated[partition] = state
        return updated, written.to_retry
