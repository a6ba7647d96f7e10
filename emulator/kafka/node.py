"""One broker process: starts like KafkaServer, request by request, and can stop or crash.

Owns the order of start-up and how the parts are connected, not what they do. State that outlives
the process (the disk) is passed in. Source: server/KafkaServer.scala@2.6.3 startup; spec §2.12.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from emulator.kafka.broker.admin import AdminManager
from emulator.kafka.broker.alter_isr_manager import RpcAlterIsrManager
from emulator.kafka.broker.apis import KafkaApis
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.controlled_shutdown import controlled_shutdown
from emulator.kafka.broker.controller_channel import BrokerToControllerChannelManager
from emulator.kafka.broker.dynamic_config import (
    BrokerConfigHandler,
    ConfigHandler,
    DynamicConfigManager,
    TopicConfigHandler,
)
from emulator.kafka.broker.fetcher import ReplicaFetcherManager
from emulator.kafka.broker.log_dir_failure import handle_log_dir_failures
from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.log_retention import LogRetention
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.replica_manager import ReplicaManager
from emulator.kafka.broker.request_handlers import RequestHandlerPool
from emulator.kafka.broker.zookeeper import BLOCKING, client_of, client_version_of
from emulator.kafka.controller.controller import KafkaController
from emulator.kafka.coordinator.group_coordinator import GroupCoordinator
from emulator.kafka.coordinator.group_metadata_manager import GroupMetadataManager
from emulator.kafka.coordinator.producer_id_manager import ProducerIdManager
from emulator.kafka.model.errors import IllegalState
from emulator.kafka.model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from emulator.kafka.profiles.base import ServesFrom
from emulator.kafka.profiles.guards.following import REQUESTS_OUTLIVE_CONNECTIONS
from emulator.kafka.protocol.messages import Request
from emulator.kafka.protocol.transport import Network, ServerConnection
from emulator.trace import events
from emulator.trace.values import ProcessState, TopicPartition
from zk import paths
from zk.client.client import ZooKeeperClient
from zk.client.codec_admin import BrokerInfo, EndPoint
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import MalformedZNode, ZooKeeperError
from zk.wire import Service


class _Halted(Exception):
    """The process ended itself during start-up."""


class HealthCheck:
    """KafkaHealthcheck's listener (up to 1.0): registers again in every new session."""

    def __init__(self, register: Callable[[], Awaitable[None]]) -> None:
        self._register = register

    async def before_initializing_session(self) -> None: ...

    async def after_initializing_session(self) -> None:
        await self._register()


class Broker:
    """A KafkaServer in one process of the kernel."""

    def __init__(
        self,
        context: BrokerContext,
        service: Service,
        network: Network,
        disk: Disk,
        *,
        host: str,
        port: int,
        wall_ms: Callable[[], int],
        draw: Callable[[int], int],
        not_before_us: Mapping[str, int] | None = None,
        new_cluster_id: str = "emulated-cluster-id---",
    ) -> None:
        """`not_before_us` delays steps of the start-up until a given time (a recording provides the
        time of the registration). `wall_ms` is the clock for timestamps in znodes. `draw(n)`
        returns a number below n. `new_cluster_id` is used if the cluster has no id yet.
        """
        self.context, self._service, self._network = context, service, network
        self._disk, self._host, self._port, self._wall_ms = disk, host, port, wall_ms
        self._draw, self._new_cluster_id = draw, new_cluster_id
        self._not_before_us = dict(not_before_us or {})
        self.started = False
        self.zk: ZooKeeperClient | None = None
        self.replica_manager: ReplicaManager | None = None
        self.metadata_cache = MetadataCache(context)
        self.controller: KafkaController | None = None
        self._pool = RequestHandlerPool(context)
        self._apis: KafkaApis | None = None
        self._groups: GroupCoordinator | None = None
        self._zk_client: KafkaZkClient | None = None
        self.shutting_down = False
        self.exited = False
        self.page_port = -1
        self.process_state: ProcessState = "dead"
        self._state_before_pause: ProcessState = "dead"

    @property
    def broker(self) -> int:
        return self.context.broker

    @property
    def broker_epoch(self) -> int:
        return self.context.broker_epoch

    def start(self) -> None:
        """Start the boot in thread `main`."""
        self.context.emit(events.BrokerStarting, self.context.profile.name)
        self._change_process_state("starting")
        self.context.spawn("main", self._startup())

    def receive(self, request: Request, connection: ServerConnection) -> None:
        """A network thread has read a request; it waits until the broker has started."""
        self._pool.receive(request, connection)

    @property
    def drops_requests_at_end(self) -> bool:
        """Whether requests are lost that a network thread reads together with the end of their
        connection."""
        return REQUESTS_OUTLIVE_CONNECTIONS not in self.context.guards

    async def _step(self, name: str) -> None:
        """A named step of the start-up: worlds charge time here, and the step waits for its
        recorded time."""
        await self.context.kernel.checkpoint(f"boot.{name}")
        await self.context.kernel.sleep_until(self._not_before_us.get(name, 0))

    async def _startup(self) -> None:
        """Start; if that fails, shut down what was started and exit (KafkaServerStartable)."""
        try:
            zk_client = self._zk_client = await self._connect()
            await self._load(zk_client)
            # The registration precedes the controller: a controller that is elected at once finds
            # itself among the live brokers.
            if not self._registers_last:
                if "live-brokers" in self.context.profile.reads_at_start:
                    await self._step("list_ids")
                    await zk_client.get_all_broker_and_epochs()
                await self._step("register")
                await self._register()
            await self._serve(zk_client)
        except _Halted:
            return
        except (ZooKeeperError, MalformedZNode, IllegalState) as error:
            # The last two: no producer ids can be claimed.
            # No controlled shutdown: this broker does not lead any partition yet.
            self.context.failed("startup", error)
            self.shutting_down = True
            self._change_process_state("stopping")
            await self._shutdown_parts()

    @property
    def _registers_last(self) -> bool:
        """Up to 1.0 KafkaHealthcheck registers after the controller and everything else have
        started."""
        return self.context.profile.zookeeper_client == BLOCKING

    async def _connect(self) -> KafkaZkClient:
        """Connect, create the top-level paths, get the cluster id (initZkClient)."""
        await self._step("connect")
        config = self.context.config
        self.zk = client_of(self.context, self._service)
        await self.zk.wait_until_connected(config.zookeeper_connection_timeout_ms)
        zk_client = KafkaZkClient(self.zk, self._wall_ms, client_version_of(self.context.profile))
        await self._step("top_level_paths")
        await zk_client.create_top_level_paths()
        reads = self.context.profile.reads_at_start
        if "cluster-id" in reads:
            cluster_id = await zk_client.get_cluster_id()
            if cluster_id is None:
                await self._step("cluster_id")
                cluster_id = await zk_client.create_or_get_cluster_id(self._new_cluster_id)
            self.context.cluster_id = cluster_id
        # The default first: the broker's own settings override it (DynamicBrokerConfig.scala@2.6.3
        # initialize).
        for entity in (paths.DEFAULT_ENTITY, str(self.broker)) if "broker-configs" in reads else ():
            await zk_client.get_entity_configs("brokers", entity)
        return zk_client

    async def _load(self, zk_client: KafkaZkClient) -> None:
        """Load the logs and their topics' configurations, then start the ReplicaManager."""
        await self._step("logs")
        # Of all topics in the cluster, even those without a replica on this broker
        # (LogManager.scala@2.6.3 apply).
        topic_configs = {
            topic: await zk_client.get_entity_configs("topics", topic)
            for topic in await zk_client.get_all_topics(register_watch=False)
        }
        config = self.context.config
        samples = config.replication_quota_window_num
        window_ms = config.replication_quota_window_size_seconds * 1000
        self._leader_quota = ReplicationQuotaManager(samples, window_ms)
        self._follower_quota = ReplicationQuotaManager(samples, window_ms)
        self._logs = LogManager(self.context, zk_client, self._disk, self.halt, self._wall_ms)
        for topic, topic_config in topic_configs.items():
            self._logs.set_topic_config(topic, topic_config)
        if not self._logs.live_directories:
            self.halt("no log directory can be written")
            raise _Halted
        await self._step("replica_manager")
        alter_isr = None
        if self.context.profile.propagation == "rpc":
            # ISR changes go through the controller, sent by a separate thread of this broker.
            channel = BrokerToControllerChannelManager(
                self.context, self._network, self.metadata_cache
            )
            channel.start()
            alter_isr = RpcAlterIsrManager(self.context, channel)
        self.replica_manager = ReplicaManager(
            self.context,
            zk_client,
            self._logs,
            self.metadata_cache,
            self._leader_quota,
            self._draw,
            alter_isr,
        )
        self.replica_manager.fetchers = ReplicaFetcherManager(
            self.context,
            self._network,
            self.replica_manager.partitions.get,
            self._follower_quota,
            OutOfRange(self.context, zk_client, self.halt),
        )
        await self._step("replica_manager_startup")
        await self.replica_manager.startup()
        LogRetention(self.context, self._logs, self.replica_manager.partitions.get).start()
        self.context.spawn(
            "LogDirFailureHandler",
            handle_log_dir_failures(
                self.context, zk_client, self._logs, self.replica_manager, self.halt
            ),
        )

    async def _register(self) -> None:
        """Create `/brokers/ids/<id>` in the current session; its czxid is the broker epoch."""
        assert self._zk_client is not None
        info = BrokerInfo(
            (EndPoint("PLAINTEXT", "PLAINTEXT", self._host, self._port),),
            jmx_port=self.page_port,
            timestamp_ms=self._wall_ms(),
            rack=self.context.config.broker_rack or None,
            version=self.context.profile.registration_version,
        )
        epoch = await self._zk_client.register_broker(self.broker, info)
        self.context.broker_epoch = epoch
        self.context.emit(events.BrokerRegistered, epoch)

    async def _serve(self, zk_client: KafkaZkClient) -> None:
        """Start the controller and the request handlers. The controller's thread runs in parallel
        from here on."""
        profile = self.context.profile
        early = "early_" if self._registers_last else ""
        await self._step(f"{early}controller")
        controller = KafkaController(self.context, zk_client, self._network, self._register)
        self.controller = controller
        assert self.replica_manager is not None
        config = self.context.config
        group_manager = GroupMetadataManager(
            self.context, self.replica_manager, config.offsets_topic_num_partitions, self._wall_ms
        )
        groups = GroupCoordinator(self.context, group_manager, self.metadata_cache, self._draw)
        self._groups = groups
        producer_ids = ProducerIdManager(self.context, zk_client)
        self.replica_manager.on_leadership_change = partial(_offsets_partitions_moved, groups)
        self._apis = KafkaApis(
            self.context,
            self.replica_manager,
            self.metadata_cache,
            AdminManager(self.context, zk_client, self.metadata_cache, self._draw),
            controller.requests,
            producer_ids,
            groups,
        )
        # Handlers start before the controller's event thread has run: requests may arrive before
        # the election has been decided.
        self._answers_from("controller")
        controller.startup()
        if profile.controller_threads == "callbacks":
            # The election is the main thread's work, and so is all that its winner does.
            await controller.events.drained()
        # The coordinators need the partition counts of their topics; while a topic does not exist
        # its setting counts (GroupMetadataManager.scala@2.6.3 getGroupMetadataTopicPartitionCount).
        reads = profile.reads_at_start
        await self._step(f"{early}coordinator")
        if "offsets-topic" in reads:
            offsets = await zk_client.get_full_replica_assignment_for_topics([GROUP_METADATA_TOPIC])
            if offsets:
                group_manager.partition_count = len(offsets)
        if "transactions" in reads:
            await self._step(f"{early}coordinator")
            if "producer-ids" in reads:
                await producer_ids.startup()
            await zk_client.get_full_replica_assignment_for_topics([TRANSACTION_STATE_TOPIC])
        self._answers_from("registration")
        await self._step(f"{early}config")
        quotas = (self._leader_quota, self._follower_quota)
        handlers: dict[str, ConfigHandler] = {
            "topics": TopicConfigHandler(
                self.broker, self._logs, *quotas, controller.enable_topic_unclean_leader_election
            ),
            "brokers": BrokerConfigHandler(
                self.context, *quotas, controller.enable_default_unclean_leader_election
            ),
        }
        await DynamicConfigManager(self.context, zk_client, handlers).startup()
        if self._registers_last:
            zk_client.client.register_state_handler(HealthCheck(self._register))
            await self._step("register")
            await self._register()
        await self._step(f"{early}started")
        self._answers_from("end")
        self.started = True
        self.context.emit(events.BrokerStarted)
        self._change_process_state("up")

    def _answers_from(self, point: ServesFrom) -> None:
        """Start the request handlers if this version does so at this point; waiting requests are
        processed now."""
        if self.context.profile.serves_from == point:
            assert self._apis is not None
            self._pool.start(self._apis.handle)

    # -- the end -----------------------------------------------------------------------------------

    def terminate(self) -> None:
        """SIGTERM: an orderly stop in its own thread. During start-up the process ends at once
        (KafkaServerStartable.shutdown)."""
        if self.shutting_down:
            return
        if not self.started:
            self.halt("SIGTERM during start-up")
            return
        self.shutting_down = True
        self._change_process_state("stopping")
        self.context.spawn("SIGTERM handler", self._shutdown())

    async def _shutdown(self) -> None:
        """KafkaServer.shutdown: notify the controller, stop serving, close the session, exit. A
        failed step does not prevent the next one (CoreUtils.swallow)."""
        await self.context.kernel.checkpoint("shutdown.start")
        if self.replica_manager is not None:
            # Set before the request to the controller: the controller makes this broker a follower,
            # which must not fetch itself back into the ISR (spec §4.3).
            self.replica_manager.is_shutting_down = True
        if self.context.config.controlled_shutdown_enable:
            assert self._zk_client is not None
            try:
                await controlled_shutdown(
                    self.context, self._zk_client, self.metadata_cache, self._network
                )
            except ZooKeeperError as error:
                self.context.failed("controlled shutdown", error)
        await self._shutdown_parts()

    async def _shutdown_parts(self) -> None:
        self.started = False
        await self.context.kernel.checkpoint("shutdown.sockets")
        # The sockets close first, so clients notice at once; then the handlers and periodic tasks
        # end (SocketServer.stopProcessingRequests). Fetchers run until the ReplicaManager stops,
        # after the coordinators' purgatories.
        self._network.stop_listening(self._port)
        await self._pool.shutdown()
        await self.context.scheduler.shutdown()
        # KafkaApis.close (0.9, 0.10): each reaper of the client quotas, for fetches and for produce
        # requests, ends with its poll of 1 s.
        for _ in range(self.context.profile.quota_reapers_at_stop):
            await self.context.kernel.checkpoint("shutdown.quotas")
        # Up to 2.8 the reaper of each purgatory ends when its poll of 200 ms does; later it is
        # woken (DelayedOperation.scala@3.3.2 shutdown).
        woken = "woken_" if self.context.profile.reapers_woken else ""
        await self.context.kernel.checkpoint(f"shutdown.{woken}purgatories")
        if self._groups is not None:
            self._groups.shutdown()
        if self.replica_manager is not None:
            await self.replica_manager.shutdown()
        await self.context.kernel.checkpoint(f"shutdown.{woken}parts")
        if self.controller is not None:
            await self.controller.shutdown()
        # Last, because the session's end removes the registration.
        if self.zk is not None:
            self.zk.close()
        await self.context.kernel.checkpoint("shutdown.exit")
        self.exited = True
        self.context.emit(events.BrokerExited)
        self._change_process_state("dead")
        self.context.process.crash()

    def halt(self, reason: str) -> None:
        """Exit.halt: the process ends at once, without shutdown steps."""
        self.context.emit(events.BrokerHalted, reason)
        self.crash()

    def crash(self) -> None:
        """The process dies between two instructions: its sockets close, its session expires
        later."""
        if self.process_state != "dead":
            self._change_process_state("dead")
        self.context.process.crash()
        self.started = False
        # No closeSession is sent: the server keeps the session until its timeout.
        if self.zk is not None:
            self.zk.abandon()

    def note_pause(self) -> None:
        """The process was paused (SIGSTOP)."""
        self._state_before_pause = self.process_state
        self._change_process_state("paused")

    def note_resume(self) -> None:
        """The process runs again (SIGCONT), in the state before the pause."""
        self._change_process_state(self._state_before_pause)

    def _change_process_state(self, state: ProcessState) -> None:
        """Add the change to the trace. It does not become the cause of what follows."""
        if self.process_state == "paused" and state == "stopping":
            self._state_before_pause = state  # SIGTERM waits until the process runs on
            return
        kernel = self.context.kernel
        self.process_state, cause = state, kernel.cause
        self.context.emit(events.ProcessStateChanged, state)
        kernel.cause = cause

    def close(self) -> None:
        """The world ends: close the session in an orderly way."""
        if self.zk is not None:
            self.zk.close()


def _offsets_partitions_moved(
    groups: GroupCoordinator, leads: list[TopicPartition], follows: list[TopicPartition]
) -> None:
    """The leader of a partition of `__consumer_offsets` coordinates that partition's groups
    (KafkaApis.scala@2.6.3 onLeadershipChange)."""
    for partition in leads:
        if partition.topic == GROUP_METADATA_TOPIC:
            groups.on_election(partition.partition)
    for partition in follows:
        if partition.topic == GROUP_METADATA_TOPIC:
            groups.on_resignation(partition.partition)
