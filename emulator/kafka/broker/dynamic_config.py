"""Configuration changes at runtime: watched, read again, and applied.

Owns the watch on `/config/changes`; the handlers apply the settings. Sources:
server/DynamicConfigManager.scala, common/ZkNodeChangeNotificationListener.scala,
server/ConfigHandler.scala, server/DynamicBrokerConfig.scala@2.6.3; spec §1.10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.quota import UNLIMITED, ReplicationQuotaManager, throttled_partitions
from emulator.kafka.broker.zookeeper import BLOCKING
from emulator.kafka.model.config import unclean_election
from emulator.kernel.sync import Promise, Queue
from zk import paths
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError


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
        enable_unclean_election: Callable[[str], None],
    ) -> None:
        """`enable_unclean_election` notifies the controller in this process of a topic that allows
        unclean elections (enableTopicUncleanLeaderElection)."""
        self._broker, self._logs = broker, logs
        self._enable_unclean_election = enable_unclean_election
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
                # `config` is always complete: a missing key was removed.
                quota.remove_throttle(entity)
        if unclean_election(config, default=False):
            self._enable_unclean_election(entity)


class BrokerConfigHandler:
    """Dynamic broker configuration: replication quotas, and the default for unclean elections."""

    def __init__(
        self,
        context: BrokerContext,
        leader_quota: ReplicationQuotaManager,
        follower_quota: ReplicationQuotaManager,
        enable_unclean_election: Callable[[], None],
    ) -> None:
        self._context, self._leader, self._follower = context, leader_quota, follower_quota
        self._enable_unclean_election = enable_unclean_election
        self._static_unclean = context.config.unclean_leader_election_enable

    def process(self, entity: str, config: dict[str, str]) -> None:
        # Every broker gets every notification; the cluster-wide default is not emulated.
        if entity != str(self._context.broker):
            return
        # DynamicLogConfig.reconfigure: only enabling it concerns the controller at once.
        before = self._context.config.unclean_leader_election_enable
        now = unclean_election(config, default=self._static_unclean)
        self._context.config = msgspec.structs.replace(
            self._context.config, unclean_leader_election_enable=now
        )
        if now and not before:
            self._enable_unclean_election()
        self._leader.bytes_per_s = _rate(config, "leader.replication.throttled.rate")
        self._follower.bytes_per_s = _rate(config, "follower.replication.throttled.rate")


def _rate(config: dict[str, str], key: str) -> int:
    return int(config[key]) if key in config else UNLIMITED


class _Change(NamedTuple):
    """A reason to look for notifications: their names if the client has read them already."""

    names: list[str] | None
    applied: Promise[None]


class DynamicConfigManager:
    """Watches `/config/changes` and reads the entities that it names.

    Notifications are only triggers: the configuration is read from the entity's own znode.
    Notifications after the last applied one are applied in order; then all are read once more in
    order to purge old ones.
    """

    path = paths.CONFIG_CHANGES

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        handlers: dict[str, ConfigHandler],
    ) -> None:
        self._context, self._zk_client, self._handlers = context, zk_client, handlers
        self._changes: Queue[_Change] = Queue(context.kernel)
        self._blocking = context.profile.zookeeper_client == BLOCKING
        self._last_executed = -1

    async def startup(self) -> None:
        """Set the watch, apply existing notifications and listen
        (`/config/changes-event-process-thread`)."""
        if self._blocking:
            await self._zk_client.make_sure_persistent_path_exists(paths.CONFIG_CHANGES)
        await self._zk_client.client.subscribe_child_changes(self)
        # The first list includes changes announced while the broker was down. From 1.1 on it also
        # sets the watch, and start-up does not wait for it.
        self._context.spawn("/config/changes-event-process-thread", self._run())
        applied = self._put(None)
        if self._blocking:
            await applied.wait()
        # Up to 0.9 there is no ZkNodeChangeNotificationListener, which lists in a new session and
        # at whose start all configurations are read.
        if "all-configs" not in self._context.profile.reads_at_start:
            return
        self._zk_client.client.register_state_handler(self)
        for entity_type in ("topics", "brokers"):
            for entity in await self._zk_client.get_children(paths.config_entity_type(entity_type)):
                await self._apply(entity_type, entity)

    async def before_initializing_session(self) -> None:
        """Does nothing."""

    async def after_initializing_session(self) -> None:
        """A new session has no watches: list the notifications again. Up to 1.0 that is done in
        ZkClient's event thread, and the next listener waits for it."""
        applied = self._put(None)
        if self._blocking:
            await applied.wait()

    def handle_child_change(self) -> None:
        self._put(self._zk_client.client.listed(paths.CONFIG_CHANGES))

    def _put(self, names: list[str] | None) -> Promise[None]:
        change = _Change(names, Promise(self._context.kernel))
        self._changes.put(change)
        return change.applied

    async def _run(self) -> None:
        while True:
            change = await self._changes.take()
            try:
                await self._process_notifications(change.names)
            except ZooKeeperError as error:
                # The notifications after the failed one are applied with the next change.
                self._context.failed("config change", error)
            change.applied.resolve(None)

    async def _process_notifications(self, names: list[str] | None) -> None:
        if names is None:
            names = await self._zk_client.get_children(paths.CONFIG_CHANGES)
        # Sequence numbers have ten digits: the order of the names is the order of creation.
        numbered = [(paths.config_change_sequence_number(n), n) for n in sorted(names)]
        for number, name in numbered:
            if number > self._last_executed:
                change = await self._zk_client.get_config_change(name)
                # Another broker may have purged it since the list was read.
                if change is not None:
                    entity_type, _, entity = change[0].partition("/")
                    await self._apply(entity_type, entity)
                self._last_executed = number
        # purgeObsoleteNotifications: Kafka reads each notification's creation time.
        for _, name in numbered:
            await self._zk_client.get_config_change(name)

    async def _apply(self, entity_type: str, entity: str) -> None:
        handler = self._handlers.get(entity_type)
        if handler is None:
            return
        # A tool may have written an invalid value: the entity keeps its previous settings.
        try:
            handler.process(entity, await self._zk_client.get_entity_configs(entity_type, entity))
        except ValueError as error:
            self._context.failed(f"configuration of {entity_type}/{entity}", error)
