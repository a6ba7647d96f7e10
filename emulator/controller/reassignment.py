"""Moving a partition to other replicas, in two rounds of ZooKeeper writes with a wait in between.

Owns what is being reassigned and how far it is; the writes are conditional or fenced as Kafka's
are. Source: controller/KafkaController.scala@2.6.3 onPartitionReassignment; spec §6.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from emulator.controller.context import (
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from emulator.controller.handlers import NodeChangeHandler
from emulator.controller.machinery import Machinery
from emulator.controller.topic_deletion import TopicDeletionManager
from emulator.model.errors import Errors
from emulator.trace.values import TopicPartition
from zk import paths
from zk.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment

_S = ReplicaState


def assignment_towards(now: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The assignment while a partition moves to `target`: target first, then what is left of the
    origin (reassignTo)."""
    origin = now.origin_replicas
    full = (*target, *(b for b in origin if b not in target))
    return ReplicaAssignment(
        full,
        tuple(b for b in full if b not in origin),
        tuple(b for b in origin if b not in target),
    )


class Reassignments:
    """All reassignments under way."""

    def __init__(
        self,
        machinery: Machinery,
        deletions: TopicDeletionManager,
        isr_changed: Callable[[TopicPartition], None],
    ) -> None:
        """`isr_changed` is called when the state znode of a partition that moves changes."""
        self._machinery = machinery
        self._context, self._zk_client = machinery.context, machinery.zk_client
        self._batch = machinery.batch
        self._partitions, self._replicas = machinery.partitions, machinery.replicas
        self._deletions, self._isr_changed = deletions, isr_changed

    async def start_from_api(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, Errors]:
        """The latest request counts: what the command znode says of these partitions goes."""
        await self._remove_from_command_znode(targets)
        return await self.start(targets)

    async def start(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, Errors]:
        """Begin each move that is valid (None cancels); per partition what came of it."""
        results: dict[TopicPartition, Errors] = {}
        for partition, target in targets.items():
            results[partition] = await self._start(partition, target)
        return results

    async def _start(self, partition: TopicPartition, target: tuple[int, ...] | None) -> Errors:
        now = self._context.assignments.get(partition)
        if now is None or partition.topic in self._context.topics_to_be_deleted:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        if target is None:
            if not now.is_being_reassigned:
                return Errors.NO_REASSIGNMENT_IN_PROGRESS
            target = now.origin_replicas
        elif not target or any(b not in self._context.live_brokers for b in target):
            return Errors.INVALID_REPLICA_ASSIGNMENT
        if not now.is_being_reassigned and target == now.replicas:
            return Errors.NONE
        await self._on_partition_reassignment(partition, assignment_towards(now, target))
        return Errors.NONE

    async def resume(self, wanted: Callable[[TopicPartition], bool]) -> None:
        """Look again at those under way that `wanted` picks (maybeResumeReassignments)."""
        for partition in list(self._context.being_reassigned):
            if wanted(partition):
                await self._on_partition_reassignment(
                    partition, self._context.assignments[partition]
                )

    async def isr_change(self, partition: TopicPartition) -> None:
        """The state znode of a partition that moves has changed: perhaps the new ones are in."""
        assignment = self._context.assignments.get(partition)
        if partition not in self._context.being_reassigned or assignment is None:
            return
        if await self._is_complete(partition, assignment):
            await self._on_partition_reassignment(partition, assignment)

    async def _on_partition_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        self._context.topics_ineligible_for_deletion.update(
            {partition.topic: None} if partition.topic in self._context.topics_to_be_deleted else {}
        )
        await self._update_current_reassignment(partition, assignment)
        if await self._is_complete(partition, assignment):
            await self._complete(partition, assignment)
        else:
            await self._grow(partition, assignment)

    async def _update_current_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """The topic's znode, the cache, and the watch of the state znode."""
        if self._context.assignments[partition] != assignment:
            await self._write_topic(partition, assignment)
            unneeded = [
                b
                for b in self._context.assignments[partition].replicas
                if b not in assignment.replicas
            ]
            self._context.assignments[partition] = assignment
            await self._stop_removed(partition, unneeded)
        if partition not in self._context.being_reassigned:
            self._context.being_reassigned[partition] = None
            handler = NodeChangeHandler(
                paths.topic_partition_state(*partition),
                changed=lambda: self._isr_changed(partition),
            )
            self._zk_client.client.register_change_handler(handler)

    async def _write_topic(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        topic = {
            p.partition: a
            for p, a in self._context.assignments.items()
            if p.topic == partition.topic
        }
        topic[partition.partition] = assignment
        await self._zk_client.set_topic_assignment(
            partition.topic, topic, self._context.epoch_zk_version
        )

    async def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        """Whether all target replicas are in the ISR, as ZooKeeper has it now."""
        if not assignment.is_being_reassigned:
            return True
        found = await self._zk_client.get_topic_partition_states([partition])
        state = found.get(partition)
        return state is not None and all(
            b in state.leader_and_isr.isr for b in assignment.target_replicas
        )

    async def _grow(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Phase A: everybody hears of the larger assignment, new replicas start."""
        await self._bump_leader_epoch(partition, assignment)
        new = [PartitionAndReplica(partition, b) for b in assignment.adding_replicas]
        await self._replicas.handle_state_changes(new, _S.NEW)

    async def _bump_leader_epoch(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """updateLeaderEpochAndSendRequest: until it is written, whoever else writes."""
        while True:
            found = await self._zk_client.get_topic_partition_states([partition])
            state = found.get(partition)
            if state is None or state.controller_epoch > self._context.epoch:
                return
            it = state.leader_and_isr
            bumped = LeaderAndIsr(it.leader, it.leader_epoch + 1, it.isr, it.zk_version)
            written = await self._zk_client.update_leader_and_isr(
                {partition: bumped}, self._context.epoch, self._context.epoch_zk_version
            )
            result = written.finished.get(partition)
            if isinstance(result, LeaderAndIsr):
                new = LeaderIsrAndControllerEpoch(result, self._context.epoch)
                self._partitions.cache(partition, new, "epoch bump")
                await self._tell(assignment.replicas, partition, new, assignment)
                return
            if result is not None:
                raise result

    async def _tell(
        self,
        brokers: Sequence[int],
        partition: TopicPartition,
        state: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
    ) -> None:
        self._batch.new_batch()
        self._batch.add_leader_and_isr(brokers, partition, state, assignment, is_new=False)
        await self._batch.send(self._context.epoch)

    async def _complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Phase B: the target is in sync; leadership moves, what is left over goes."""
        target = assignment.target_replicas
        online = [PartitionAndReplica(partition, b) for b in assignment.adding_replicas]
        await self._replicas.handle_state_changes(online, _S.ONLINE)
        done = ReplicaAssignment(target)
        self._context.assignments[partition] = done
        await self._move_leader_if_required(partition, done)
        await self._stop_removed(partition, assignment.removing_replicas)
        await self._write_topic(partition, done)
        self._zk_client.client.unregister_change_handler(paths.topic_partition_state(*partition))
        await self._remove_from_command_znode([partition])
        self._context.being_reassigned.pop(partition, None)
        everybody = self._context.live_or_shutting_down
        await self._machinery.send_update_metadata(everybody, [partition])
        await self._deletions.resume_for([partition.topic])

    async def _move_leader_if_required(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        leader = self._context.leadership[partition].leader_and_isr.leader
        if leader in assignment.replicas and self._context.is_replica_online(leader):
            await self._bump_leader_epoch(partition, assignment)
            return
        await self._partitions.handle_state_changes(
            [partition], PartitionState.ONLINE, self._partitions.reassign_strategy
        )

    async def _stop_removed(self, partition: TopicPartition, removed: Sequence[int]) -> None:
        gone = [PartitionAndReplica(partition, b) for b in removed]
        for state in (
            _S.OFFLINE,
            _S.DELETION_STARTED,
            _S.DELETION_SUCCESSFUL,
            _S.NON_EXISTENT,
        ):
            await self._replicas.handle_state_changes(gone, state)

    async def _remove_from_command_znode(self, partitions: Iterable[TopicPartition]) -> None:
        """If moves came through the command znode it is rewritten without them."""
        if not await self._zk_client.path_exists(paths.REASSIGN_PARTITIONS):
            return
        left = await self._zk_client.get_partition_reassignment()
        for partition in partitions:
            left.pop(partition, None)
        await self._zk_client.set_or_delete_partition_reassignment(
            left, self._context.epoch_zk_version
        )
