"""What the admin API does at a broker: create topics, alter configurations, and apply
configurations that changed.

Sources: server/AdminManager.scala, zk/AdminZkClient.scala, server/DynamicConfigManager.scala,
common/ZkNodeChangeNotificationListener.scala, server/ConfigHandler.scala@2.6.3; spec §1.10, §2.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from emulator.broker.context import BrokerContext
from emulator.broker.log_manager import LogManager
from emulator.broker.metadata_cache import MetadataCache
from emulator.broker.purgatory import DelayedOperation, Purgatory
from emulator.broker.quota import UNLIMITED, ReplicationQuotaManager, throttled_partitions
from emulator.kernel.sync import Queue
from emulator.model.errors import Errors
from emulator.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from emulator.trace.values import TopicPartition
from zk import paths
from zk.codec import ReplicaAssignment
from zk.errors import ZooKeeperError
from zk.kafka_zk_client import KafkaZkClient

Respond = Callable[[AdminResponse], None]


class DelayedCreatePartitions(DelayedOperation):
    """A CreateTopics answer waits until this broker's metadata cache shows a leader for every
    partition."""

    def __init__(
        self,
        timeout_ms: int,
        partitions: list[TopicPartition],
        metadata_cache: MetadataCache,
        respond: Respond,
    ) -> None:
        super().__init__(timeout_ms)
        self._partitions, self._metadata_cache = partitions, metadata_cache
        self._respond = respond

    def _missing(self) -> bool:
        found = [self._metadata_cache.partition(p) for p in self._partitions]
        return any(state is None or state.leader < 0 for state in found)

    async def try_complete(self) -> bool:
        return False if self._missing() else await self.force_complete()

    async def on_complete(self) -> None:
        self._respond(AdminResponse(Errors.REQUEST_TIMED_OUT if self._missing() else Errors.NONE))


class DelayedDeleteTopic(DelayedOperation):
    """A DeleteTopics answer waits until this broker's metadata cache has forgotten the topic."""

    def __init__(
        self, timeout_ms: int, topic: str, metadata_cache: MetadataCache, respond: Respond
    ) -> None:
        super().__init__(timeout_ms)
        self._topic, self._metadata_cache, self._respond = topic, metadata_cache, respond

    def _is_there(self) -> bool:
        return self._topic in self._metadata_cache.topics()

    async def try_complete(self) -> bool:
        return False if self._is_there() else await self.force_complete()

    async def on_complete(self) -> None:
        error = Errors.REQUEST_TIMED_OUT if self._is_there() else Errors.NONE
        self._respond(AdminResponse(error))


class AdminManager:
    """CreateTopics and IncrementalAlterConfigs at this broker."""

    def __init__(
        self, context: BrokerContext, zk_client: KafkaZkClient, metadata_cache: MetadataCache
    ) -> None:
        self._context, self._zk_client, self._metadata_cache = context, zk_client, metadata_cache
        self._purgatory = Purgatory(context, "topic")

    async def create_topic(self, request: CreateTopicsRequest, respond: Respond) -> None:
        """createTopicWithAssignment: the configuration first, then the topic; not atomic, not
        fenced."""
        error = await self._validate(request)
        if error is not Errors.NONE:
            respond(AdminResponse(error))
            return
        topic = request.topic
        await self._zk_client.set_or_create_entity_configs("topics", topic, dict(request.config))
        assignment = {n: ReplicaAssignment(r) for n, r in enumerate(request.assignment)}
        await self._zk_client.create_topic_assignment(topic, assignment)
        parked = DelayedCreatePartitions(
            request.timeout_ms,
            [TopicPartition(topic, n) for n in assignment],
            self._metadata_cache,
            respond,
        )
        await self._purgatory.try_complete_else_watch(parked, [topic])

    async def _validate(self, request: CreateTopicsRequest) -> Errors:
        """validateTopicCreate: the cache, then ZooKeeper; the assignment must name distinct live
        brokers."""
        if request.topic in self._metadata_cache.topics():
            return Errors.TOPIC_ALREADY_EXISTS
        for replicas in request.assignment:
            if not replicas or len(set(replicas)) != len(replicas):
                return Errors.INVALID_REPLICA_ASSIGNMENT
            if any(self._metadata_cache.alive_broker(b) is None for b in replicas):
                return Errors.INVALID_REPLICA_ASSIGNMENT
        if await self._zk_client.path_exists(paths.topic(request.topic)):
            return Errors.TOPIC_ALREADY_EXISTS
        return Errors.NONE

    async def create_partitions(self, request: CreatePartitionsRequest, respond: Respond) -> None:
        """Read who is there and what the topic has, and overwrite the topic's znode."""
        await self._zk_client.get_all_broker_and_epochs()
        topic = request.topic
        found = await self._zk_client.get_full_replica_assignment_for_topics([topic])
        if not found:
            respond(AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        assignment = {p.partition: a for p, a in found.items()}
        after = len(found) + len(request.assignment)
        added = [TopicPartition(topic, n) for n in range(len(found), after)]
        for partition, replicas in zip(added, request.assignment, strict=True):
            assignment[partition.partition] = ReplicaAssignment(replicas)
        await self._zk_client.set_topic_assignment(topic, assignment)
        parked = DelayedCreatePartitions(request.timeout_ms, added, self._metadata_cache, respond)
        await self._purgatory.try_complete_else_watch(parked, [topic])

    async def delete_topic(self, request: DeleteTopicsRequest, respond: Respond) -> None:
        """Leave a marker for the controller; answered when this broker's cache has forgotten it."""
        if not await self._zk_client.path_exists(paths.topic(request.topic)):
            respond(AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        await self._zk_client.create_delete_topic_path(request.topic)
        parked = DelayedDeleteTopic(
            request.timeout_ms, request.topic, self._metadata_cache, respond
        )
        await self._purgatory.try_complete_else_watch(parked, [request.topic])

    async def metadata_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """The cache was updated: parked requests are looked at again."""
        for topic in dict.fromkeys(p.topic for p in partitions):
            await self._purgatory.check_and_complete(topic)

    async def alter_configs(self, request: AlterConfigsRequest) -> AdminResponse:
        """Read, merge, write, and announce the entity's configuration (incrementalAlterConfigs)."""
        if request.entity_type == "topics":
            topic = paths.topic(request.entity)
            for _ in range(2):
                if not await self._zk_client.path_exists(topic):
                    return AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        config = await self._zk_client.get_entity_configs(request.entity_type, request.entity)
        config.update(request.config)
        await self._zk_client.set_or_create_entity_configs(
            request.entity_type, request.entity, config
        )
        await self._zk_client.create_config_change_notification(
            f"{request.entity_type}/{request.entity}"
        )
        return AdminResponse(Errors.NONE)


class ConfigHandler(Protocol):
    """Applies one entity's configuration."""

    def process(self, entity: str, config: dict[str, str]) -> None: ...


class TopicConfigHandler:
    """Topic overrides: min.insync.replicas, throttled replicas."""

    def __init__(
        self,
        broker: int,
        logs: LogManager,
        leader_quota: ReplicationQuotaManager,
        follower_quota: ReplicationQuotaManager,
    ) -> None:
        self._broker, self._logs = broker, logs
        self._quotas = {
            "leader.replication.throttled.replicas": leader_quota,
            "follower.replication.throttled.replicas": follower_quota,
        }

    def process(self, entity: str, config: dict[str, str]) -> None:
        self._logs.set_topic_config(entity, config)
        for key, quota in self._quotas.items():
            if config.get(key):
                quota.mark_throttled(entity, throttled_partitions(config[key], self._broker))
            else:
                quota.remove_throttle(entity)


class BrokerConfigHandler:
    """Dynamic broker configuration: replication quotas."""

    def __init__(
        self,
        broker: int,
        leader_quota: ReplicationQuotaManager,
        follower_quota: ReplicationQuotaManager,
    ) -> None:
        self._broker, self._leader, self._follower = broker, leader_quota, follower_quota

    def process(self, entity: str, config: dict[str, str]) -> None:
        if entity != str(self._broker):
            return
        self._leader.bytes_per_s = _rate(config, "leader.replication.throttled.rate")
        self._follower.bytes_per_s = _rate(config, "follower.replication.throttled.rate")


def _rate(config: dict[str, str], key: str) -> int:
    return int(config[key]) if key in config else UNLIMITED


class DynamicConfigManager:
    """Watches `/config/changes` and has the entities that it names read anew.

    Notifications are triggers only: the entity's configuration is read from its own znode. Those
    above the last one applied are applied in order; then all are read once more, to purge the old
    ones.
    """

    path = paths.CONFIG_CHANGES

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        handlers: dict[str, ConfigHandler],
    ) -> None:
        self._context, self._zk_client, self._handlers = context, zk_client, handlers
        self._changes: Queue[None] = Queue(context.kernel)
        self._last_executed = -1

    async def startup(self) -> None:
        """Set the watch, apply what is there, and listen
        (`/config/changes-event-process-thread`)."""
        self._zk_client.client.register_child_handler(self)
        self._zk_client.client.register_state_handler(self)
        self._changes.put(None)
        self._context.spawn("/config/changes-event-process-thread", self._run())
        for entity_type in ("topics", "brokers"):
            for entity in await self._zk_client.get_children(paths.config_entity_type(entity_type)):
                await self._apply(entity_type, entity)

    async def before_initializing_session(self) -> None:
        """Nothing to do."""

    async def after_initializing_session(self) -> None:
        """A new session has no watches: list the notifications again."""
        self._changes.put(None)

    def handle_child_change(self) -> None:
        self._changes.put(None)

    async def _run(self) -> None:
        while True:
            await self._changes.take()
            try:
                await self._process_notifications()
            except ZooKeeperError as error:
                self._context.failed("config change", error)

    async def _process_notifications(self) -> None:
        names = sorted(await self._zk_client.get_children(paths.CONFIG_CHANGES))
        numbered = [(paths.config_change_sequence_number(n), n) for n in names]
        for number, name in numbered:
            if number > self._last_executed:
                found = await self._zk_client.get_config_change(name)
                if found is not None:
                    entity_type, _, entity = found[0].partition("/")
                    await self._apply(entity_type, entity)
                self._last_executed = number
        for _, name in numbered:
            await self._zk_client.get_config_change(name)

    async def _apply(self, entity_type: str, entity: str) -> None:
        handler = self._handlers.get(entity_type)
        if handler is None:
            return
        try:
            handler.process(entity, await self._zk_client.get_entity_configs(entity_type, entity))
        except ValueError as error:
            self._context.failed(f"configuration of {entity_type}/{entity}", error)
