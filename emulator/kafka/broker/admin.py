"""The admin API at a broker: create topics and partitions, delete topics, alter configurations.

It does not talk to the controller: the controller sees the changes in ZooKeeper. Sources:
server/AdminManager.scala, zk/AdminZkClient.scala@2.6.3; spec §1.10, §2.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from emulator.kafka.broker.assignment import (
    Assignment,
    assign_replicas_to_brokers,
    check_added_partitions,
    check_new_topic,
)
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.purgatory import DelayedOperation, Purgatory
from emulator.kafka.broker.topic_rules import (
    BadValue,
    can_collide,
    check_collisions,
    check_topic_name,
    check_topic_settings,
)
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.profiles.guards.controller import (
    DELETION_CHECKED_AT_CREATION,
    DISABLED_DELETION_IS_AN_ERROR,
    EXISTING_TOPICS_KNOWN,
    ONLY_A_MOVING_TOPIC_REFUSES_PARTITIONS,
    TOPIC_IDS_READ,
)
from emulator.kafka.protocol.messages import (
    AdminResponse,
    AlterConfigsRequest,
    ConfigEntry,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)
from emulator.trace.values import TopicPartition
from zk import paths
from zk.client.codec import ReplicaAssignment
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import Code, ZooKeeperError

Respond = Callable[[AdminResponse], None]

TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DEFAULT_CONFIG = 1, 2, 5
"""DescribeConfigsResponse.ConfigSource."""

DEFAULT = -1
"""In CreateTopics, -1 means the default of the broker's configuration."""


class DelayedTopicChange(DelayedOperation):
    """A response that waits until this broker's metadata cache shows the change that was written to
    ZooKeeper (DelayedCreatePartitions, DelayedDeleteTopics)."""

    def __init__(self, timeout_ms: int, is_visible: Callable[[], bool], respond: Respond) -> None:
        super().__init__(timeout_ms)
        self._is_visible, self._respond = is_visible, respond

    async def try_complete(self) -> bool:
        return await self.force_complete() if self._is_visible() else False

    async def on_complete(self) -> None:
        # After a timeout the change stays written, and the controller will process it.
        error = Errors.NONE if self._is_visible() else Errors.REQUEST_TIMED_OUT
        self._respond(AdminResponse(error))


class AdminManager:
    """CreateTopics, CreatePartitions, DeleteTopics and IncrementalAlterConfigs at this broker."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        metadata_cache: MetadataCache,
        draw: Callable[[int], int],
    ) -> None:
        """`draw(n)` returns a number below n (AdminUtils.rand)."""
        self._context, self._zk_client, self._metadata_cache = context, zk_client, metadata_cache
        self._draw = draw
        self._checks_deletion = DELETION_CHECKED_AT_CREATION in context.guards
        self._reads_topic_ids = TOPIC_IDS_READ in context.guards
        self._only_its_own_moves = ONLY_A_MOVING_TOPIC_REFUSES_PARTITIONS in context.guards
        self._purgatory = Purgatory(context, "topic")

    async def create_topic(
        self, request: CreateTopicsRequest, respond: Respond, *, waits: bool = True
    ) -> None:
        """Write the configuration, then the topic; not atomic and not fenced
        (createTopicWithAssignment). `waits`: the response waits for leaders."""
        topic = request.topic
        try:
            # The cache is checked first because that costs nothing. If it is outdated, ZooKeeper
            # finds the topic below.
            is_checked = EXISTING_TOPICS_KNOWN in self._context.guards
            if is_checked and topic in self._metadata_cache.topics():
                raise KafkaError(Errors.TOPIC_ALREADY_EXISTS)
            replicas = self._replicas_of(request)
            check_topic_name(topic)
            exists = self._zk_client.path_exists
            if self._checks_deletion and await exists(paths.delete_topic(topic)):
                message = f"Topic '{topic}' is marked for deletion."
                raise KafkaError(Errors.TOPIC_ALREADY_EXISTS, message)
            if await exists(paths.topic(topic)):
                raise KafkaError(Errors.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
            if can_collide(topic):
                check_collisions(topic, await self._zk_client.get_all_topics(register_watch=False))
            check_new_topic(replicas)
            check_topic_settings(dict(request.config))
        except KafkaError as failed:
            respond(AdminResponse(failed.error, failed.message))
            return
        await self._context.kernel.checkpoint("create_topic")
        # Configuration first: a broker that learns of the topic reads its configuration when it
        # creates the log.
        await self._zk_client.set_or_create_entity_configs("topics", topic, dict(request.config))
        assignment = {n: ReplicaAssignment(r) for n, r in enumerate(replicas)}
        try:
            await self._zk_client.create_topic_assignment(topic, assignment)
        except ZooKeeperError as error:
            if error.code is not Code.NODE_EXISTS:
                raise
            # Another broker was faster (AdminZkClient.scala@2.6.3 writeTopicPartitionAssignment).
            message = f"Topic '{topic}' already exists."
            respond(AdminResponse(Errors.TOPIC_ALREADY_EXISTS, message))
            return
        if self._reads_topic_ids:
            # The create fires the controller's watch: the controller may be faster than the next
            # request.
            await self._context.kernel.checkpoint("topic_created")
        await self._read_topic_id(topic)
        if waits:
            await self._wait_for_leaders(topic, assignment, request.timeout_ms, respond)
        else:
            respond(AdminResponse(Errors.NONE))

    async def _read_topic_id(self, topic: str) -> None:
        """Only the request matters (getTopicIdsForTopics): the emulator has no topic ids."""
        if self._reads_topic_ids:
            await self._zk_client.get_full_replica_assignment_for_topics([topic])

    async def _wait_for_leaders(
        self, topic: str, partitions: Iterable[int], timeout_ms: int, respond: Respond
    ) -> None:
        created = [TopicPartition(topic, n) for n in partitions]

        def have_leaders() -> bool:
            states = [self._metadata_cache.partition(p) for p in created]
            return all(state is not None and state.leader >= 0 for state in states)

        parked = DelayedTopicChange(timeout_ms, have_leaders, respond)
        await self._purgatory.try_complete_else_watch(parked, [topic])

    def _replicas_of(self, request: CreateTopicsRequest) -> Assignment:
        """The requested assignment, or one drawn from the live brokers in the metadata cache."""
        partitions, factor = request.num_partitions, request.replication_factor
        if request.assignment:
            # Numbers together with an assignment could contradict it.
            if partitions != DEFAULT or factor != DEFAULT:
                raise KafkaError(Errors.INVALID_REQUEST)
            return request.assignment
        config, brokers = self._context.config, self._metadata_cache.alive_brokers()
        return assign_replicas_to_brokers(
            brokers,
            config.num_partitions if partitions == DEFAULT else partitions,
            config.default_replication_factor if factor == DEFAULT else factor,
            self._draw(len(brokers)),
            self._draw(len(brokers)),
            racks=self._metadata_cache.racks,
        )

    async def create_partitions(self, request: CreatePartitionsRequest, respond: Respond) -> None:
        """Read the registered brokers and the topic, then overwrite the topic's znode. Up to 2.3
        this is rejected while any reassignment command exists."""
        commanded = not self._only_its_own_moves and await self._zk_client.path_exists(
            paths.REASSIGN_PARTITIONS
        )
        registered = await self._zk_client.get_all_broker_and_epochs()
        if commanded:
            respond(AdminResponse(Errors.REASSIGNMENT_IN_PROGRESS))
            return
        topic = request.topic
        existing = await self._zk_client.get_full_replica_assignment_for_topics([topic])
        try:
            racks = {b: it.rack for b, (it, _) in registered.items() if it.rack is not None}
            added = added_partitions(request, list(existing.values()), sorted(registered), racks)
        except KafkaError as failed:
            respond(AdminResponse(failed.error))
            return
        assignment = {p.partition: a for p, a in existing.items()}
        assignment |= {len(existing) + n: ReplicaAssignment(r) for n, r in enumerate(added)}
        await self._read_topic_id(topic)
        # Written without a version check: changes since the reads are lost (spec §1.5, the last
        # writer wins).
        await self._zk_client.add_partitions(topic, assignment)
        added_numbers = range(len(existing), len(assignment))
        await self._wait_for_leaders(topic, added_numbers, request.timeout_ms, respond)

    async def delete_topic(self, request: DeleteTopicsRequest, respond: Respond) -> None:
        """Create the marker for the controller; the response waits until this broker's cache no
        longer has the topic. This also waits for an existing marker."""
        is_disabled = not self._context.config.delete_topic_enable
        if is_disabled and DISABLED_DELETION_IS_AN_ERROR in self._context.guards:
            respond(AdminResponse(Errors.TOPIC_DELETION_DISABLED))
            return
        topic, topics = request.topic, self._metadata_cache.topics
        if topic not in topics() or not await self._zk_client.path_exists(paths.topic(topic)):
            respond(AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        await self._zk_client.create_delete_topic_path(topic)
        parked = DelayedTopicChange(request.timeout_ms, lambda: topic not in topics(), respond)
        await self._purgatory.try_complete_else_watch(parked, [topic])

    async def metadata_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """The cache was updated: check the waiting requests again."""
        for topic in dict.fromkeys(p.topic for p in partitions):
            await self._purgatory.check_and_complete(topic)

    async def alter_configs(self, request: AlterConfigsRequest) -> AdminResponse:
        """Read, merge, write, and announce the entity's configuration (incrementalAlterConfigs)."""
        if request.entity_type == "topics":
            topic = paths.topic(request.entity)
            # Kafka checks twice: when it validates the resource, and before it writes.
            for _ in range(2):
                if not await self._zk_client.path_exists(topic):
                    return AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        config = await self._zk_client.get_entity_configs(request.entity_type, request.entity)
        config.update(request.config)
        for name in request.removed:
            config.pop(name, None)
        if request.entity_type == "topics":
            # Validate all settings, including those set before this request.
            try:
                check_topic_settings(config)
            except BadValue as failed:
                return AdminResponse(Errors.INVALID_REQUEST, failed.message)
            except KafkaError as failed:
                return AdminResponse(failed.error, failed.message)
        await self._zk_client.set_or_create_entity_configs(
            request.entity_type, request.entity, config
        )
        # After the write: a notified broker reads the entity's znode at once.
        await self._zk_client.create_config_change_notification(
            f"{request.entity_type}/{request.entity}"
        )
        return AdminResponse(Errors.NONE)

    async def describe_configs(self, request: DescribeConfigsRequest) -> AdminResponse:
        """A topic's settings (its own over this broker's), or this broker's own settings
        (describeConfigs)."""
        if request.entity_type == "topics":
            if request.entity not in self._metadata_cache.topics():
                return AdminResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION)
            own = await self._zk_client.get_entity_configs("topics", request.entity)
            config = self._context.config
            unclean = str(config.unclean_leader_election_enable).lower()
            defaults = {
                "min.insync.replicas": str(config.min_insync_replicas),
                "unclean.leader.election.enable": unclean,
                "flush.messages": str(config.log_flush_interval_messages),
            }
            entries = described(own, TOPIC_CONFIG, defaults)
        elif request.entity == str(self._context.broker):
            own = await self._zk_client.get_entity_configs("brokers", request.entity)
            entries = described(own, DYNAMIC_BROKER_CONFIG, self._context.config.properties())
        else:
            return AdminResponse(Errors.INVALID_REQUEST, "ask that broker itself")
        if request.names is not None:
            entries = tuple(e for e in entries if e.name in request.names)
        return AdminResponse(Errors.NONE, configs=entries)


def described(
    own: Mapping[str, str], source: int, defaults: Mapping[str, str]
) -> tuple[ConfigEntry, ...]:
    """Settings sorted by name; an entity's own values override the defaults."""
    names = sorted({*own, *defaults})
    return tuple(
        ConfigEntry(n, own[n], source) if n in own else ConfigEntry(n, defaults[n], DEFAULT_CONFIG)
        for n in names
    )


def added_partitions(
    request: CreatePartitionsRequest,
    existing: list[ReplicaAssignment],
    brokers: list[int],
    racks: Mapping[int, str] = {},
) -> Assignment:
    """The requested replicas; otherwise the assignment continues around the brokers from the first
    partition's leader."""
    if any(a.is_being_reassigned for a in existing):
        raise KafkaError(Errors.REASSIGNMENT_IN_PROGRESS)
    if not existing:
        raise KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    before, factor = len(existing), len(existing[0].replicas)
    if request.assignment:
        check_added_partitions(request.assignment, factor, brokers)
        return request.assignment
    if request.count <= before:
        raise KafkaError(Errors.INVALID_PARTITIONS)
    # Start at the topic's first leader: new leaders then continue around the brokers, and followers
    # keep the shift of the first partitions (AdminZkClient.scala@2.6.3 addPartitions).
    first = existing[0].replicas[0]
    start = next((n for n, b in enumerate(brokers) if b >= first), 0)
    return assign_replicas_to_brokers(
        brokers, request.count - before, factor, start, start, before, racks
    )
