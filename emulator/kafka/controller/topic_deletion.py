"""Deleting topics: brokers delete all replicas, then the controller deletes the znodes.

Owns which topics are queued and which cannot be deleted now. No znode is deleted before every
replica has responded. Source: controller/TopicDeletionManager.scala@2.6.3; spec §6.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.kafka.controller.cache_order import PartitionAndReplica
from emulator.kafka.controller.context import PartitionState, ReplicaState
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.controller import DELETION_MARKERS_CLEARED
from emulator.kafka.protocol.messages import StopReplicaResponse
from zk import paths

_S = ReplicaState


class TopicDeletionManager:
    """The topics to be deleted, and the progress of each."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self._context, self._zk_client = parts.context, parts.zk_client
        self._partitions, self._replicas = parts.partitions, parts.replicas

    @property
    def _enabled(self) -> bool:
        return self._parts.host.config.delete_topic_enable

    @property
    def watches_markers(self) -> bool:
        """Whether the controller hears of new markers."""
        return self._enabled or DELETION_MARKERS_CLEARED in self._parts.host.guards

    async def init(self, topics: Sequence[str], ineligible: Iterable[str]) -> None:
        """At fail-over: take over the queued topics; if deletion is disabled, delete the
        markers."""
        if not self._enabled:
            for topic in topics if self.watches_markers else ():
                version = self._context.epoch_zk_version
                await self._zk_client.delete_topic_deletion(topic, version)
            return
        self._context.topics_to_be_deleted = dict.fromkeys(topics)
        self.mark_ineligible(ineligible)

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Delay the deletion of those topics that are queued (markTopicIneligibleForDeletion)."""
        queued = [t for t in topics if t in self._context.topics_to_be_deleted]
        self._context.topics_ineligible_for_deletion.update(dict.fromkeys(queued))

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Queue topics, then continue all deletions."""
        self._context.topics_to_be_deleted.update(dict.fromkeys(topics))
        await self.resume()

    async def resume_for(self, topics: Iterable[str]) -> None:
        """An obstacle is gone: continue the deletion of these topics (resumeDeletionForTopics)."""
        again = [t for t in topics if t in self._context.topics_to_be_deleted]
        for topic in again:
            self._context.topics_ineligible_for_deletion.pop(topic, None)
        if again:
            await self.resume()

    async def fail(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """A broker with replicas of a topic under deletion failed (failReplicaDeletion)."""
        failed = [r for r in replicas if r.partition.topic in self._context.topics_to_be_deleted]
        if not failed:
            return
        await self._replicas.handle_state_changes(failed, _S.DELETION_INELIGIBLE)
        self.mark_ineligible(dict.fromkeys(r.partition.topic for r in failed))
        await self.resume()

    async def completed(self, broker: int, response: StopReplicaResponse) -> None:
        """A broker has responded to a StopReplica that deletes
        (TopicDeletionStopReplicaResponseReceived)."""
        whole = response.error is not Errors.NONE
        failed = [
            PartitionAndReplica(p, broker)
            for p, e in response.partitions
            if whole or e is not Errors.NONE
        ]
        await self.fail(failed)
        deleted = [PartitionAndReplica(p, broker) for p, _ in response.partitions]
        deleted = [r for r in deleted if r not in failed]
        if deleted:
            queued = [r for r in deleted if r.partition.topic in self._context.topics_to_be_deleted]
            await self._replicas.handle_state_changes(queued, _S.DELETION_SUCCESSFUL)
            await self.resume()

    async def resume(self) -> None:
        """Continue every deletion as far as possible (resumeDeletions)."""
        context = self._context
        retry: list[PartitionAndReplica] = []
        eligible = []
        for topic in list(context.topics_to_be_deleted):
            if context.all_replicas_in(topic, _S.DELETION_SUCCESSFUL):
                await self._complete(topic)
            elif not context.any_replica_in(topic, _S.DELETION_STARTED):
                retry += context.replicas_in(topic, _S.DELETION_INELIGIBLE)
            # A deletion is in progress until every broker has responded; a failed one starts again.
            if (
                topic in context.topics_to_be_deleted
                and not context.any_replica_in(topic, _S.DELETION_STARTED)
                and topic not in context.topics_ineligible_for_deletion
            ):
                eligible.append(topic)
        await self._replicas.handle_state_changes(retry, _S.OFFLINE)
        if eligible:
            await self._delete(eligible)

    async def _delete(self, topics: Sequence[str]) -> None:
        """Delete partitions: remove them from the state machine, send every broker metadata without
        a leader, then stop and delete the replicas (onTopicDeletion, onPartitionDeletion)."""
        context = self._context
        fresh = [t for t in topics if t not in context.topics_with_deletion_started]
        partitions = [p for p in context.assignments if p.topic in fresh]
        await self._partitions.handle_state_changes(partitions, PartitionState.OFFLINE)
        await self._partitions.handle_state_changes(partitions, PartitionState.NON_EXISTENT)
        context.topics_with_deletion_started.update(dict.fromkeys(fresh))
        await self._parts.host.kernel.checkpoint("deletion.start")
        # Leader -2 removes the partitions from the metadata caches: clients stop before the logs
        # are deleted.
        await self._parts.send_update_metadata(
            context.live_or_shutting_down, [p for p in context.assignments if p.topic in topics]
        )
        await self._parts.host.kernel.checkpoint("deletion.announced")
        replicas = [r for t in topics for r in context.replicas_of_topic(t)]
        alive = [r for r in replicas if context.is_replica_online(r.replica, r.partition)]
        dead = [r for r in replicas if r not in alive]
        started = [r for r in alive if context.replica_state(r) is not _S.DELETION_SUCCESSFUL]
        # One dead replica makes the whole topic ineligible; the live ones are deleted all the same.
        # They go offline first: a replica stops and leaves the ISR before its log is deleted.
        await self._replicas.handle_state_changes(dead, _S.DELETION_INELIGIBLE)
        await self._replicas.handle_state_changes(started, _S.OFFLINE)
        await self._replicas.handle_state_changes(started, _S.DELETION_STARTED)
        self.mark_ineligible(dict.fromkeys(r.partition.topic for r in dead))

    async def _complete(self, topic: str) -> None:
        """All replicas are deleted: delete the znodes (completeDeleteTopic)."""
        context, version = self._context, self._context.epoch_zk_version
        self._zk_client.client.unregister_change_handler(paths.topic(topic))
        deleted = context.replicas_in(topic, _S.DELETION_SUCCESSFUL)
        await self._replicas.handle_state_changes(deleted, _S.NON_EXISTENT)
        # The marker last: a new controller that takes over before that starts the deletion again.
        await self._zk_client.delete_recursive(paths.topic(topic), version)
        await self._zk_client.delete_paths([paths.config_entity("topics", topic)], version)
        await self._zk_client.delete_topic_deletion(topic, version)
        context.remove_topic(topic)
