"""Deleting topics: replicas are stopped and deleted at every broker, then the znodes go.

Owns which topics are queued, and which cannot be deleted now. Nothing is deleted in ZooKeeper
before every replica has answered. Source: controller/TopicDeletionManager.scala@2.6.3; spec §6.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.kafka.controller.context import (
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import StopReplicaResponse
from zk import paths

_S = ReplicaState


class TopicDeletionManager:
    """What is to be deleted, and how far it is."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self._context, self._zk_client = parts.context, parts.zk_client
        self._partitions, self._replicas = parts.partitions, parts.replicas

    @property
    def _enabled(self) -> bool:
        return self._parts.host.config.delete_topic_enable

    async def init(self, topics: Sequence[str], ineligible: Iterable[str]) -> None:
        """At fail-over: what the znodes say; where deletion is disabled the markers go."""
        if not self._enabled:
            for topic in topics:
                version = self._context.epoch_zk_version
                await self._zk_client.delete_topic_deletion(topic, version)
            return
        self._context.topics_to_be_deleted = dict.fromkeys(topics)
        self.mark_ineligible(ineligible)

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Something stands in the way of deleting these, if they are queued
        (markTopicIneligibleForDeletion)."""
        queued = [t for t in topics if t in self._context.topics_to_be_deleted]
        self._context.topics_ineligible_for_deletion.update(dict.fromkeys(queued))

    async def enqueue(self, topics: Iterable[str]) -> None:
        """New deletions, and a look at all of them."""
        self._context.topics_to_be_deleted.update(dict.fromkeys(topics))
        await self.resume()

    async def resume_for(self, topics: Iterable[str]) -> None:
        """Something that stood in the way is over (resumeDeletionForTopics)."""
        again = [t for t in topics if t in self._context.topics_to_be_deleted]
        for topic in again:
            self._context.topics_ineligible_for_deletion.pop(topic, None)
        if again:
            await self.resume()

    async def fail(self, replicas: Sequence[PartitionAndReplica]) -> None:
        """A broker with replicas of a topic under deletion is gone (failReplicaDeletion)."""
        failed = [r for r in replicas if r.partition.topic in self._context.topics_to_be_deleted]
        if not failed:
            return
        await self._replicas.handle_state_changes(failed, _S.DELETION_INELIGIBLE)
        self.mark_ineligible(dict.fromkeys(r.partition.topic for r in failed))
        await self.resume()

    async def completed(self, broker: int, response: StopReplicaResponse) -> None:
        """A broker has answered the request that deletes (TopicDeletionStopReplicaResponse)."""
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
        """Go on with every topic as far as it can be gone on with (resumeDeletions)."""
        context = self._context
        retry: list[PartitionAndReplica] = []
        eligible = []
        for topic in list(context.topics_to_be_deleted):
            if context.all_replicas_in(topic, _S.DELETION_SUCCESSFUL):
                await self._complete(topic)
            elif not context.any_replica_in(topic, _S.DELETION_STARTED):
                retry += context.replicas_in(topic, _S.DELETION_INELIGIBLE)
            # A deletion is under way as long as a broker has not answered: one that failed is
            # begun again.
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
        """onTopicDeletion, onPartitionDeletion: partitions go, every broker hears that there is no
        leader any more, the replicas are stopped and then deleted."""
        context = self._context
        fresh = [t for t in topics if t not in context.topics_with_deletion_started]
        partitions = [p for p in context.assignments if p.topic in fresh]
        await self._partitions.handle_state_changes(partitions, PartitionState.OFFLINE)
        await self._partitions.handle_state_changes(partitions, PartitionState.NON_EXISTENT)
        context.topics_with_deletion_started.update(dict.fromkeys(fresh))
        # Leader -2 takes them out of the metadata caches: clients stop before the logs go.
        await self._parts.send_update_metadata(
            context.live_or_shutting_down, [p for p in context.assignments if p.topic in topics]
        )
        replicas = [r for t in topics for r in context.replicas_of_topic(t)]
        alive = [r for r in replicas if context.is_replica_online(r.replica, r.partition)]
        dead = [r for r in replicas if r not in alive]
        started = [r for r in alive if context.replica_state(r) is not _S.DELETION_SUCCESSFUL]
        # One dead replica makes the whole topic ineligible; the others are deleted all the same.
        # Offline first: a replica stops, and leaves the ISR, before its log goes.
        await self._replicas.handle_state_changes(dead, _S.DELETION_INELIGIBLE)
        await self._replicas.handle_state_changes(started, _S.OFFLINE)
        await self._replicas.handle_state_changes(started, _S.DELETION_STARTED)
        self.mark_ineligible(dict.fromkeys(r.partition.topic for r in dead))

    async def _complete(self, topic: str) -> None:
        """Every replica is deleted: the znodes go (completeDeleteTopic)."""
        context, version = self._context, self._context.epoch_zk_version
        self._zk_client.client.unregister_change_handler(paths.topic(topic))
        deleted = context.replicas_in(topic, _S.DELETION_SUCCESSFUL)
        await self._replicas.handle_state_changes(deleted, _S.NON_EXISTENT)
        # The marker last: a controller that fails over meanwhile begins the deletion again.
        await self._zk_client.delete_recursive(paths.topic(topic), version)
        await self._zk_client.delete_paths([paths.config_entity("topics", topic)], version)
        await self._zk_client.delete_topic_deletion(topic, version)
        context.remove_topic(topic)
