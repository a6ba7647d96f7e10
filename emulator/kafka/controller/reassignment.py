"""Reassignment: moves a partition to other replicas in two phases of ZooKeeper writes.

Owns which partitions are being reassigned and how far they are; the writes are conditional or
fenced as in Kafka. Source: controller/KafkaController.scala@2.6.3 onPartitionReassignment; spec
§6.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import PartitionState, ReplicaState
from emulator.kafka.controller.errors import ControllerFailure, IllegalState, StateChangeFailed
from emulator.kafka.controller.handlers import NodeChangeHandler
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.request_batch import ControllerBrokerRequestBatch
from emulator.kafka.controller.topic_deletion import TopicDeletionManager
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.controller import (
    ADDED_REPLICAS_ARE_NEW,
    ADDED_REPLICAS_GO_ONLINE_TOGETHER,
    BUMPED_EPOCH_REMEMBERED,
    COMMAND_READ_BEFORE_REMOVAL,
    COMMAND_WRITTEN_IF_CHANGED,
    MOVE_WRITTEN_BEFORE_IT_IS_CHECKED,
    MOVES_FORGOTTEN_AT_RESIGNATION,
    MOVES_TO_DEAD_BROKERS_BEGIN,
    MOVING_REPLICAS_IN_ORDER,
    NOTIFIED_MOVES_COMPLETE,
    REMOVED_REPLICAS_NOT_SENT_ROLES,
)
from emulator.kafka.protocol.messages import Reassignment
from emulator.trace.values import TopicPartition
from zk import paths
from zk.client.codec import LeaderAndIsr, LeaderIsrAndControllerEpoch, ReplicaAssignment
from zk.errors import ZooKeeperError
from zk.scala.library import LIBRARIES, immutable_set

_S = ReplicaState


def assignment_towards(now: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The assignment while a partition moves to `target`: the target replicas, then the remaining
    original ones (reassignTo)."""
    origin = now.origin_replicas
    full = (*target, *(b for b in origin if b not in target))
    return ReplicaAssignment(
        full,
        tuple(b for b in full if b not in origin),
        tuple(b for b in origin if b not in target),
    )


class Reassignments:
    """All reassignments in progress."""

    def __init__(
        self,
        parts: ControllerParts,
        deletions: TopicDeletionManager,
    ) -> None:
        self._parts = parts
        self._context, self._zk_client = parts.context, parts.zk_client
        self._partitions, self._replicas = parts.partitions, parts.replicas
        self._deletions = deletions
        self._look_again = partial(parts.put_if_active, "ZkPartitionReassignment", self.by_command)
        guards = parts.host.guards
        self._added_are_new = ADDED_REPLICAS_ARE_NEW in guards
        self._completes_when_notified = (
            NOTIFIED_MOVES_COMPLETE in guards and "rpc" in parts.host.profile.propagations
        )
        self._go_online_together = ADDED_REPLICAS_GO_ONLINE_TOGETHER in guards
        self._is_written_first = MOVE_WRITTEN_BEFORE_IT_IS_CHECKED in guards
        self._needs_live_targets = MOVES_TO_DEAD_BROKERS_BEGIN not in guards
        self._moves_in_order = MOVING_REPLICAS_IN_ORDER in guards
        self._sends_removed = REMOVED_REPLICAS_NOT_SENT_ROLES not in guards
        self._forgets = MOVES_FORGOTTEN_AT_RESIGNATION in guards
        self._subscribes = parts.host.profile.zookeeper_client == "zkclient"
        self._reads_command = COMMAND_READ_BEFORE_REMOVAL in guards
        self._always_writes_command = COMMAND_WRITTEN_IF_CHANGED not in guards
        self._commanded: dict[TopicPartition, tuple[int, ...]] = {}
        self._left_over: dict[TopicPartition, tuple[int, ...]] = {}
        self.handler = NodeChangeHandler(paths.REASSIGN_PARTITIONS, created=self._look_again)

    async def by_request(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, Errors]:
        """Process AlterPartitionReassignments; a target of None cancels."""
        results: dict[TopicPartition, Errors] = {}
        moves: dict[TopicPartition, ReplicaAssignment] = {}
        for partition, target in targets.items():
            now = self._context.assignment(partition)
            error = Errors.NONE if target is None else self._validate(now, target)
            if error is not Errors.NONE:
                results[partition] = error
            elif target is None and not now.is_being_reassigned:
                results[partition] = Errors.NO_REASSIGNMENT_IN_PROGRESS
            else:
                moves[partition] = assignment_towards(
                    now, now.origin_replicas if target is None else target
                )
        # The latest command counts: remove these partitions from the command znode.
        await self._maybe_remove_from_command(lambda p, _: p in moves)
        return results | await self._trigger(moves)

    def _validate(self, now: ReplicaAssignment, target: tuple[int, ...]) -> Errors:
        """Brokers must be distinct, and added brokers live (validateReplicas)."""
        if not target or len(set(target)) < len(target) or any(b < 0 for b in target):
            return Errors.INVALID_REPLICA_ASSIGNMENT
        live = self._context.live
        if any(b not in live for b in assignment_towards(now, target).adding_replicas):
            return Errors.INVALID_REPLICA_ASSIGNMENT
        return Errors.NONE

    def under_way(self, partitions: Sequence[TopicPartition] | None) -> tuple[Reassignment, ...]:
        """The reassignments in progress (processListPartitionReassignments)."""
        listed = self._context.being_reassigned if partitions is None else partitions
        assignments = ((p, self._context.assignment(p)) for p in listed)
        return tuple(
            Reassignment(p, a.replicas, a.adding_replicas, a.removing_replicas)
            for p, a in assignments
            if a.is_being_reassigned
        )

    async def by_command(self) -> list[TopicPartition]:
        """Watch the command znode and start its moves, without checking that the brokers are live.
        Moves that cannot start are removed from the znode. Returns the started moves
        (processZkPartitionReassignment).
        """
        # ZkClient's subscription persists; with our client the `exists` sets the watch again.
        if not self._subscribes and not await self._zk_client.register_and_check_existence(
            self.handler
        ):
            return []
        commanded = await self._zk_client.get_partition_reassignment()
        if commanded:
            await self._parts.host.kernel.checkpoint("reassign_command")
        return await self._begin(commanded)

    async def _begin(
        self, commanded: Mapping[TopicPartition, tuple[int, ...]]
    ) -> list[TopicPartition]:
        refused = {p for p, to in commanded.items() if self._is_refused(p, to)}
        moves = {
            p: self._with_set_order(assignment_towards(self._context.assignment(p), to))
            for p, to in commanded.items()
            if p not in refused
        }
        # Remember all moves before the first one starts: one that completes at once rewrites the
        # znode with the others.
        self._commanded.update(commanded)
        results = await self._trigger(moves)
        failed = [p for p in commanded if p in refused or results[p] is not Errors.NONE]
        if failed or self._always_writes_command:
            await self._maybe_remove_from_command(lambda p, _: p in failed)
        return [p for p in results if p not in failed]

    def _is_refused(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        """Up to 2.3 a command that names the present replicas is removed, up to 0.10.0 also one
        with a broker that is not alive (KafkaController.scala@2.1.1
        maybeTriggerPartitionReassignment, @0.10.0.1
        initiateReassignReplicasForTopicPartition)."""
        dead = self._needs_live_targets and not set(target) <= set(self._context.live)
        return dead or (
            not self._is_written_first and self._context.replicas(partition) == tuple(target)
        )

    def _with_set_order(self, assignment: ReplicaAssignment) -> ReplicaAssignment:
        """Up to 2.3 the replicas of a move are an immutable Set of the target and the original
        ones."""
        if self._moves_in_order:
            return assignment
        library = LIBRARIES[self._parts.host.profile.scala]
        return msgspec.structs.replace(
            assignment,
            replicas=immutable_set(assignment.replicas, library, int)[0],
            target=assignment.target_replicas,
        )

    async def _trigger(
        self, moves: Mapping[TopicPartition, ReplicaAssignment]
    ) -> dict[TopicPartition, Errors]:
        """Start the moves one after the other; returns the error of each partition
        (maybeTriggerPartitionReassignment)."""
        results: dict[TopicPartition, Errors] = {}
        for partition, assignment in moves.items():
            deleted = partition.topic in self._context.topics_to_be_deleted
            if deleted or not self._context.replicas(partition):
                results[partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
                continue
            try:
                await self._on_partition_reassignment(partition, assignment)
                results[partition] = Errors.NONE
            except (ZooKeeperError, ControllerFailure) as error:
                self._parts.host.failed(f"reassignment of {partition}", error)
                results[partition] = Errors.UNKNOWN_SERVER_ERROR
        return results

    async def initialize(
        self, commanded: Mapping[TopicPartition, tuple[int, ...]] | None = None
    ) -> None:
        """At fail-over: start the commanded moves, then resume those in progress
        (initializePartitionReassignments). Up to 0.10 also the moves from this broker's last time
        as controller, unless they are complete (KAFKA-5310).
        """
        begun = await (self.by_command() if commanded is None else self._begin(commanded))
        left_over, self._left_over = self._left_over, {}
        # No assignment: the topic is deleted. The target's assignment: another controller completed
        # the move.
        again = {
            p: to
            for p, to in left_over.items()
            if p not in begun and self._context.replicas(p) not in ((), to)
        }
        begun += await self._begin(again) if again else []
        await self.resume(lambda p: p not in begun)

    def resign(self) -> None:
        """Stop watching. Before 0.11 the controller remembers the moves in progress."""
        context = self._context
        self._commanded.clear()
        for partition in context.being_reassigned:
            state = paths.topic_partition_state(*partition)
            self._zk_client.client.unregister_change_handler(state)
            if not self._forgets:
                self._left_over[partition] = context.assignment(partition).target_replicas

    async def resume(self, selects: Callable[[TopicPartition], bool]) -> None:
        """Check the selected moves in progress again (maybeResumeReassignments)."""
        for partition in list(self._context.being_reassigned):
            if selects(partition):
                now = self._context.assignment(partition)
                await self._on_partition_reassignment(partition, now)

    async def isr_change(self, partition: TopicPartition) -> None:
        """The state znode of a moving partition changed: complete the move if the ISR has all
        target replicas."""
        if partition not in self._context.being_reassigned:
            return
        assignment = self._context.assignment(partition)
        if await self._is_complete(partition, assignment):
            await self._on_partition_reassignment(partition, assignment)

    async def notified(self, partitions: Sequence[TopicPartition]) -> None:
        """Leaders changed these ISRs themselves. A controller that expects AlterIsr learns of it
        only here (KAFKA-10521)."""
        for partition in partitions if self._completes_when_notified else ():
            await self.isr_change(partition)

    async def _on_partition_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        # While it moves, the topic must not be deleted: its set of replicas is not final.
        self._deletions.mark_ineligible([partition.topic])
        if self._is_written_first:
            await self._update_current_reassignment(partition, assignment)
            is_complete = await self._is_complete(partition, assignment)
        else:
            is_new = partition not in self._context.being_reassigned
            self._watch(partition)
            if is_new and self._subscribes:
                # ZkClient's subscription sets the watch with an `exists`.
                await self._zk_client.path_exists(paths.topic_partition_state(*partition))
            is_complete = await self._is_complete(partition, assignment)
            if not is_complete:
                await self._update_current_reassignment(partition, assignment)
        if is_complete:
            await self._complete(partition, assignment)
        else:
            # Phase A: all replicas get the larger assignment, and the new replicas start.
            await self._bump_leader_epoch(partition, assignment)
            # Each in a batch of its own, with its UpdateMetadata (startNewReplicas).
            for broker in assignment.adding_replicas:
                new = PartitionAndReplica(partition, broker)
                await self._replicas.handle_state_changes([new], _S.NEW)

    async def _update_current_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Write the topic's znode, update the cache, stop replicas that only an earlier move added,
        and watch the state znode."""
        before = self._context.assignment(partition)
        if before != assignment:
            # The znode before the cache, and before any replica starts: a new controller recognizes
            # the move from the znode.
            await self._write_topic(partition, assignment)
            self._context.assignments[partition] = assignment
            # A new command replaced one in progress: stop the replicas that only the old one added.
            unneeded = [b for b in before.replicas if b not in assignment.replicas]
            await self._stop_removed(partition, unneeded)
        self._watch(partition)

    def _watch(self, partition: TopicPartition) -> None:
        """Register a handler; the next read of the state znode sets its watch."""
        if not self._is_alter_isr_enabled:
            process = partial(self.isr_change, partition)
            changed = partial(self._parts.put_if_active, "PartitionReassignmentIsrChange", process)
            handler = NodeChangeHandler(paths.topic_partition_state(*partition), changed=changed)
            self._zk_client.client.register_change_handler(handler)
        self._context.being_reassigned[partition] = None

    @property
    def _is_alter_isr_enabled(self) -> bool:
        """A controller that sends AlterIsr itself expects all brokers to do so and does not watch
        state znodes. It misses the changes of leaders that still write to ZooKeeper."""
        return self._parts.host.profile.propagation == "rpc"

    async def _write_topic(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        topic = self._context.assignment_of_topic(partition.topic)
        topic[partition.partition] = assignment
        await self._zk_client.set_topic_assignment(
            partition.topic, topic, self._context.epoch_zk_version
        )

    async def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        """Whether all target replicas are in the ISR, read from ZooKeeper now; the ISR may have
        other members too."""
        if not assignment.is_being_reassigned:
            return True
        states = await self._zk_client.get_topic_partition_states([partition])
        state = states.get(partition)
        return state is not None and all(
            b in state.leader_and_isr.isr for b in assignment.target_replicas
        )

    async def _bump_leader_epoch(
        self,
        partition: TopicPartition,
        assignment: ReplicaAssignment,
        also_to: Sequence[int] = (),
    ) -> None:
        """Raise the leader epoch, repeating the write until it succeeds; then send it to all
        replicas, and `also_to` others (updateLeaderEpochAndSendRequest)."""
        epoch = self._context.epoch
        bumped: LeaderIsrAndControllerEpoch | None = None
        while bumped is None:
            # updateLeaderEpoch: one conditional write based on the current state.
            states = await self._zk_client.get_topic_partition_states([partition])
            state = states.get(partition)
            if state is None:
                raise IllegalState(f"{partition} has no state whose leader epoch could be raised")
            if state.controller_epoch > epoch:
                raise StateChangeFailed(
                    f"{partition} was written by a controller of epoch {state.controller_epoch}"
                )
            it = state.leader_and_isr
            write = LeaderAndIsr(it.leader, it.leader_epoch + 1, it.isr, it.zk_version)
            await self._parts.host.kernel.checkpoint("bump_leader_epoch")
            written = await self._zk_client.update_leader_and_isr(
                {partition: write}, epoch, self._context.epoch_zk_version
            )
            result = written.finished.get(partition)
            if isinstance(result, ZooKeeperError):
                raise result
            if result is not None:
                bumped = LeaderIsrAndControllerEpoch(result, epoch)
        # Before the fix the cache keeps the old epoch: later requests made from it are ignored as
        # stale.
        if BUMPED_EPOCH_REMEMBERED in self._parts.host.guards:
            self._partitions.cache(partition, bumped, "epoch bump")
        await self._parts.host.kernel.checkpoint("bump_leader_epoch")
        added = assignment.adding_replicas if self._added_are_new else ()
        existing = [broker for broker in assignment.replicas if broker not in added]
        existing += also_to

        def fill(batch: ControllerBrokerRequestBatch) -> None:
            batch.add_leader_and_isr(existing, partition, bumped, assignment, is_new=False)
            if added:
                batch.add_leader_and_isr(added, partition, bumped, assignment, is_new=True)

        await self._parts.send(fill)

    async def _complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Phase B: the target replicas are in sync. Move leadership, stop the removed replicas."""
        if self._go_online_together:
            online = [PartitionAndReplica(partition, b) for b in assignment.adding_replicas]
            await self._replicas.handle_state_changes(online, _S.ONLINE)
        else:
            for broker in assignment.target_replicas:
                replica = PartitionAndReplica(partition, broker)
                await self._replicas.handle_state_changes([replica], _S.ONLINE)
        # The cache has the final assignment before the leader is chosen: the election reads it.
        done = ReplicaAssignment(assignment.target_replicas)
        self._context.assignments[partition] = done
        # moveReassignedPartitionLeaderIfRequired
        state = self._context.leadership.get(partition)
        if state is None:
            raise IllegalState(f"nothing is known of the leader of {partition}")
        leader = state.leader_and_isr.leader
        if leader in done.replicas and self._context.is_replica_online(leader, partition):
            removed = assignment.removing_replicas if self._sends_removed else ()
            await self._bump_leader_epoch(partition, done, removed)
        else:
            await self._partitions.handle_state_changes(
                [partition], PartitionState.ONLINE, self._partitions.reassign_strategy
            )
        await self._stop_removed(partition, assignment.removing_replicas)
        # The topic's znode gets the final assignment only now: a new controller that takes over
        # earlier continues the move.
        await self._write_topic(partition, done)
        await self._forget(partition, done)
        live_brokers = self._context.live_or_shutting_down
        await self._parts.send_update_metadata(live_brokers, [partition])
        await self._deletions.resume_for([partition.topic])

    async def _stop_removed(self, partition: TopicPartition, removed: Sequence[int]) -> None:
        replicas = [PartitionAndReplica(partition, b) for b in removed]
        # The states change at once, without waiting for responses: a broker that is down keeps its
        # log.
        for state in (
            _S.OFFLINE,
            _S.DELETION_STARTED,
            _S.DELETION_SUCCESSFUL,
            _S.NON_EXISTENT,
        ):
            await self._replicas.handle_state_changes(replicas, state)

    async def _forget(self, partition: TopicPartition, done: ReplicaAssignment) -> None:
        """End the reassignment and remove its command
        (removePartitionFromReassigningPartitions)."""
        if partition not in self._context.being_reassigned:
            raise IllegalState(f"{partition} is not being reassigned")
        if not self._is_alter_isr_enabled:
            state = paths.topic_partition_state(*partition)
            self._zk_client.client.unregister_change_handler(state)
        await self._maybe_remove_from_command(
            lambda p, target: p == partition and target == done.replicas
        )
        del self._context.being_reassigned[partition]

    async def _maybe_remove_from_command(
        self, remove: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Rewrite the command znode without the selected moves, or delete it when none is left;
        then look for a new command (maybeRemoveFromZkReassignment). From 1.1 to 2.3 the znode is
        not read first. Before 1.1 it is read without checking that it exists.
        """
        if not self._reads_command:
            commanded = self._commanded
        elif self._subscribes or await self._zk_client.path_exists(paths.REASSIGN_PARTITIONS):
            commanded = await self._zk_client.get_partition_reassignment()
        else:
            return
        left = {p: target for p, target in commanded.items() if not remove(p, target)}
        self._commanded = left
        version = self._context.epoch_zk_version
        if left:
            await self._zk_client.set_or_create_partition_reassignment(left, version)
        else:
            await self._zk_client.delete_partition_reassignment(version)
            # The `exists` of that check sets the watch again; without it the next command is not
            # noticed. ZkClient sets it by itself.
            if not self._subscribes:
                self._look_again()
