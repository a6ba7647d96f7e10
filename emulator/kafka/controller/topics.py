"""Topics that are created, extended and deleted: the controller's reaction to their znodes.

Owns the watches on topic znodes. Source: controller/KafkaController.scala@2.6.3 processTopicChange,
processPartitionModifications, processTopicDeletion, onNewPartitionCreation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from emulator.kafka.controller.context import PartitionState, ReplicaState
from emulator.kafka.controller.handlers import NodeChangeHandler
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.topic_deletion import TopicDeletionManager
from emulator.trace.values import TopicPartition
from zk import paths


class Topics:
    """How the active controller handles topic changes."""

    def __init__(self, parts: ControllerParts, deletions: TopicDeletionManager) -> None:
        self._parts, self._deletions = parts, deletions
        self._context, self._zk_client = parts.context, parts.zk_client
        self._partitions, self._replicas = parts.partitions, parts.replicas
        self._subscribes = parts.host.profile.zookeeper_client == "zkclient"
        self._watched: dict[str, None] = {}

    def watch(self, topics: Iterable[str]) -> None:
        """Register a handler for each topic; the next read of its znode sets the watch."""
        for topic in topics:
            process = partial(self.on_modification, topic)
            # A resigned controller reads, and finds nothing new in the context that it keeps.
            read = partial(self._zk_client.get_full_replica_assignment_for_topics, [topic])
            modified = partial(self._parts.put_if_active, "PartitionModifications", process, read)
            handler = NodeChangeHandler(paths.topic(topic), changed=modified)
            self._watched[topic] = None
            self._zk_client.client.register_change_handler(handler)

    def unwatch_all(self) -> None:
        for topic in self._watched:
            self._zk_client.client.unregister_change_handler(paths.topic(topic))
        self._watched.clear()

    async def on_change(self, listed: Sequence[str] | None = None) -> None:
        """Create the partitions of new topics and forget deleted topics. `listed` came with the
        event."""
        topics = listed
        if topics is None:
            topics = await self._zk_client.get_all_topics(register_watch=True)
        await self._parts.host.kernel.checkpoint("topics_listed")
        new = [t for t in topics if t not in self._context.all_topics]
        removed = [t for t in self._context.all_topics if t not in topics]
        self._context.all_topics = dict.fromkeys(topics)
        if not self._subscribes:
            # The read of the assignments below sets the watch.
            self.watch(new)
        added = await self._zk_client.get_full_replica_assignment_for_topics(new)
        if self._subscribes:
            # ZkClient reads first and subscribes afterwards: partitions added in between cause no
            # event.
            await self.subscribe(new)
        for topic in removed:
            self._context.remove_topic(topic)
        self._context.assignments.update(added)
        if added:
            await self._on_new_partition_creation(list(added))

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to each topic with an `exists` (registerPartitionModificationsListener)."""
        self.watch(topics)
        for topic in topics:
            await self._zk_client.path_exists(paths.topic(topic))

    async def on_modification(self, topic: str) -> None:
        """A topic's znode changed: create new partitions. New partitions of a topic under deletion
        are removed from the znode again."""
        context, zk_client = self._context, self._zk_client
        assignments = await zk_client.get_full_replica_assignment_for_topics([topic])
        # Also true for a partition that lost all its replicas: an empty assignment counts as
        # unknown.
        added = {p: assignments[p] for p in self._in_map(assignments) if not context.replicas(p)}
        if not added:
            return
        if topic not in context.topics_to_be_deleted:
            context.assignments.update(added)
            await self._on_new_partition_creation(list(added))
            return
        # restorePartitionReplicaAssignment: somebody added partitions during the deletion. The
        # znode keeps the partitions whose znodes exist, with their cached assignment.
        existing = await zk_client.get_children(paths.topic_partitions(topic))
        remaining = {
            p.partition: context.assignment(p) for p in assignments if str(p.partition) in existing
        }
        await zk_client.set_topic_assignment(topic, remaining, context.epoch_zk_version)

    async def _on_new_partition_creation(self, partitions: Sequence[TopicPartition]) -> None:
        await self._parts.host.kernel.checkpoint("new_partitions")
        # A new replica gets no request while its partition has no leader. The partition's
        # transition to Online creates the state znode and sends LeaderAndIsr to all replicas.
        replicas = self._context.replicas_for_partitions(partitions)
        await self._partitions.handle_state_changes(partitions, PartitionState.NEW)
        await self._replicas.handle_state_changes(replicas, ReplicaState.NEW)
        await self._partitions.handle_state_changes(
            partitions, PartitionState.ONLINE, self._partitions.offline_strategy
        )
        await self._replicas.handle_state_changes(replicas, ReplicaState.ONLINE)

    def _in_map(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Up to 1.0 the new partitions are filtered from the HashMap that was read into a second
        one, which changes the order within a bucket again (KafkaController.scala@1.0.2
        PartitionModifications)."""
        if not self._subscribes:
            return list(partitions)
        return self._context.order.of_map(partitions)

    async def on_deletion(self, listed: Sequence[str] | None = None) -> None:
        """Process deletion markers: delete those of unknown topics, queue the others."""
        marked = await self._zk_client.get_topic_deletions() if listed is None else listed
        version = self._context.epoch_zk_version
        for topic in [t for t in marked if t not in self._context.all_topics]:
            await self._zk_client.delete_topic_deletion(topic, version)
        known = [t for t in marked if t in self._context.all_topics]
        if not self._parts.host.config.delete_topic_enable:
            for topic in known:
                await self._zk_client.delete_topic_deletion(topic, version)
        elif known:
            moving = {p.topic for p in self._context.being_reassigned}
            # This precedes the queueing and thus has no effect: only topics that were already
            # queued are marked (2.6.3, read from its bytecode).
            self._deletions.mark_ineligible([t for t in known if t in moving])
            await self._deletions.enqueue(known)
