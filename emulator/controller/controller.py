"""The controller of a cluster, as every broker runs it; one of them is active.

Owns election, fail-over, and the reaction to brokers, topics and ISR changes; the transitions are
in the state machines. Knows its host only through `ports.Host`, never the broker's code.
Source: controller/KafkaController.scala@2.6.3; spec §6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from emulator.controller.channel_manager import ControllerChannelManager
from emulator.controller.context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from emulator.controller.controlled_shutdown import ControlledShutdowns
from emulator.controller.elections import Elections
from emulator.controller.event_manager import ControllerEvent, ControllerEventManager
from emulator.controller.handlers import ChildChangeHandler, NodeChangeHandler
from emulator.controller.partition_state_machine import PartitionStateMachine
from emulator.controller.ports import Host
from emulator.controller.reassignment import Reassignments
from emulator.controller.replica_state_machine import ReplicaStateMachine
from emulator.controller.request_batch import ControllerBrokerRequestBatch
from emulator.controller.topic_deletion import TopicDeletionManager
from emulator.controller.topics import Topics
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Promise
from emulator.model.errors import Errors, KafkaError
from emulator.protocol.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrResponse,
    LiveBroker,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from emulator.protocol.transport import Network
from emulator.trace import events
from emulator.trace.values import TopicPartition
from zk import paths
from zk.codec_admin import BrokerInfo
from zk.errors import ControllerMoved, ZooKeeperError
from zk.kafka_zk_client import KafkaZkClient
from zk.scala_order import small_table_else_trie, topic_partition_hash

NO_CONTROLLER = -1
FIRST_REBALANCE_MS = 5000


class KafkaController:
    """One broker's controller."""

    def __init__(
        self,
        host: Host,
        zk_client: KafkaZkClient,
        network: Network,
        register_broker: Callable[[], Awaitable[None]],
    ) -> None:
        """`register_broker` creates this broker's registration under the present session."""
        self._host, self._zk_client = host, zk_client
        self._register_broker = register_broker
        self.active_controller_id = NO_CONTROLLER
        self.context = ControllerContext()
        self.events = ControllerEventManager(host, self._process)
        self._channels = ControllerChannelManager(host, network)
        self._batch = ControllerBrokerRequestBatch(
            host,
            self.context,
            self._channels,
            self._leader_and_isr_answered,
            self._update_metadata_answered,
            self._deletion_answered,
        )
        self._partitions = PartitionStateMachine(host, self.context, zk_client, self._batch)
        self._replicas = ReplicaStateMachine(
            host, self.context, zk_client, self._batch, self._partitions
        )
        self._shutdowns = ControlledShutdowns(
            self.context, self._batch, self._partitions, self._replicas
        )
        self._deletions = TopicDeletionManager(
            host, self.context, zk_client, self._batch, self._partitions, self._replicas
        )
        self._elections = Elections(host, self.context, self._partitions)
        self._reassignments = Reassignments(
            host,
            self.context,
            zk_client,
            self._batch,
            self._partitions,
            self._replicas,
            self._deletions,
            self._reassignment_isr_changed,
        )
        self._topics = Topics(
            host,
            self.context,
            zk_client,
            self._partitions,
            self._replicas,
            self._deletions,
            self._topic_modified,
        )
        self._scheduled: list[Task] = []
        self._modification_handlers: dict[int, NodeChangeHandler] = {}
        self._controller_handler = NodeChangeHandler(
            paths.CONTROLLER,
            created=lambda: self._put("ControllerChange", self._maybe_resign),
            deleted=lambda: self._put("Reelect", self._reelect),
            changed=lambda: self._put("ControllerChange", self._maybe_resign),
        )
        self._child_handlers = [
            ChildChangeHandler(path, partial(self._put_if_active, name, process))
            for path, name, process in (
                (paths.BROKER_IDS, "BrokerChange", self._process_broker_change),
                (paths.TOPICS, "TopicChange", self._topics.on_change),
                (paths.DELETE_TOPICS, "TopicDeletion", self._topics.on_deletion),
                (
                    paths.LOG_DIR_EVENT_NOTIFICATION,
                    "LogDirEventNotification",
                    self._process_log_dir_event_notification,
                ),
                (
                    paths.ISR_CHANGE_NOTIFICATION,
                    "IsrChangeNotification",
                    self._process_isr_change_notification,
                ),
            )
        ]
        self._preferred_handler = NodeChangeHandler(
            paths.PREFERRED_REPLICA_ELECTION,
            created=lambda: self._put("ReplicaLeaderElection", self._process_preferred_election),
        )
        self._reassignment_handler = NodeChangeHandler(
            paths.REASSIGN_PARTITIONS,
            created=lambda: self._put("ZkPartitionReassignment", self._process_reassignment),
        )

    @property
    def is_active(self) -> bool:
        """This broker is the controller, as far as it knows."""
        return self.active_controller_id == self._host.broker

    def startup(self) -> None:
        """Begin to work on events; the first one runs for election."""
        self._zk_client.client.register_state_handler(self)
        self._put("Startup", self._process_startup)
        self.events.start()

    def _put(self, name: str, process: Callable[[], Awaitable[None]]) -> None:
        self.events.put(ControllerEvent(name, process))

    async def _process(self, event: ControllerEvent) -> None:
        """An exception is logged and the event is over, except that a newer controller makes this
        one look."""
        try:
            await event.process()
        except ControllerMoved:
            await self._maybe_resign()
        except ZooKeeperError as error:
            self._host.failed(event.name, error)

    # -- election ----------------------------------------------------------------------------------

    async def _process_startup(self) -> None:
        await self._zk_client.register_and_check_existence(self._controller_handler)
        await self._elect()

    async def _reelect(self) -> None:
        await self._maybe_resign()
        await self._elect()

    async def _elect(self) -> None:
        """Win `/controller`, or find who has it (elect)."""
        current = await self._zk_client.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if current is None else current
        if current is not None:
            return
        try:
            zk_client, broker = self._zk_client, self._host.broker
            epoch, version = await zk_client.register_controller_and_increment_controller_epoch(
                broker
            )
            self.context.epoch, self.context.epoch_zk_version = epoch, version
            self.active_controller_id = broker
            self._host.emit(events.ControllerElected, epoch, version)
            await self._on_controller_failover()
        except ControllerMoved:
            await self._maybe_resign()
        except ZooKeeperError as error:
            self._host.failed("election", error)
            await self._trigger_controller_move()

    async def _maybe_resign(self) -> None:
        """Watch `/controller` again, see whose it is, and resign if it was mine (maybeResign)."""
        was_active = self.is_active
        await self._zk_client.register_and_check_existence(self._controller_handler)
        current = await self._zk_client.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if current is None else current
        if was_active and not self.is_active:
            await self._on_controller_resignation()

    async def _trigger_controller_move(self) -> None:
        """Fail-over failed: give `/controller` up, with the version remembered before resigning."""
        current = await self._zk_client.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if current is None else current
        if not self.is_active:
            return
        try:
            version = self.context.epoch_zk_version
            self.active_controller_id = NO_CONTROLLER
            await self._on_controller_resignation()
            await self._zk_client.delete_controller(version)
        except ControllerMoved:
            await self._maybe_resign()

    # -- fail-over ---------------------------------------------------------------------------------

    async def _on_controller_failover(self) -> None:
        """Watches first, then the notifications are deleted unread, then everything is read (spec
        §6.2)."""
        client = self._zk_client.client
        for child_handler in self._child_handlers:
            client.register_child_handler(child_handler)
        for handler in (self._preferred_handler, self._reassignment_handler):
            await self._zk_client.register_and_check_existence(handler)
        version = self.context.epoch_zk_version
        log_dir_events = await self._zk_client.get_all_log_dir_event_notifications()
        await self._zk_client.delete_log_dir_event_notifications(log_dir_events, version)
        isr_changes = await self._zk_client.get_all_isr_change_notifications()
        await self._delete_isr_change_notifications(isr_changes)
        await self._initialize_controller_context()
        deletions = await self._zk_client.get_topic_deletions()
        self._deletions.init(deletions, self._ineligible_for_deletion(deletions))
        await self._send_update_metadata(self.context.live_or_shutting_down, ())
        await self._replicas.startup()
        await self._partitions.startup()
        await self._process_reassignment()
        await self._reassignments.resume(lambda _: True)
        await self._deletions.resume()
        await self._elect_as_commanded()
        if self._host.config.auto_leader_rebalance_enable:
            self._schedule_auto_leader_rebalance()

    def _ineligible_for_deletion(self, topics: Sequence[str]) -> list[str]:
        """Topics with a replica that is offline, or with a reassignment."""
        _, offline = self.context.online_and_offline_replicas()
        blocked = {r.partition.topic for r in offline}
        blocked |= {p.topic for p in self.context.being_reassigned}
        return [t for t in topics if t in blocked]

    def _schedule_auto_leader_rebalance(self) -> None:
        """auto-leader-rebalance-task: first after 5 s."""

        async def put() -> None:
            self._put_if_active("AutoPreferredReplicaLeaderElection", self._elections.rebalance)

        period_ms = self._host.config.leader_imbalance_check_interval_seconds * 1000
        task = self._host.schedule("auto-leader-rebalance-task", put, period_ms, FIRST_REBALANCE_MS)
        self._scheduled.append(task)

    async def _initialize_controller_context(self) -> None:
        """Brokers, topics, assignments, states: all that ZooKeeper has."""
        context = self.context
        registered = await self._zk_client.get_all_broker_and_epochs()
        context.live_brokers = _live(registered)
        topics = await self._zk_client.get_all_topics(register_watch=True)
        context.all_topics = dict.fromkeys(topics)
        self._topics.watch(topics)
        context.assignments = await self._zk_client.get_full_replica_assignment_for_topics(topics)
        context.being_reassigned = {
            p: None for p, a in context.assignments.items() if a.is_being_reassigned
        }
        context.leadership.clear()
        context.shutting_down.clear()
        await self._register_modification_handlers(context.live_brokers)
        await self._update_leadership_cache(list(context.assignments), "fail-over")
        await self._channels.startup([where for where, _ in context.live_brokers.values()])

    async def _register_modification_handlers(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            handler = NodeChangeHandler(
                paths.broker_id(broker),
                changed=partial(
                    self._put,
                    "BrokerModifications",
                    partial(self._process_broker_modifications, broker),
                ),
            )
            self._modification_handlers[broker] = handler
            await self._zk_client.register_and_check_existence(handler)

    def _unregister_modification_handlers(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            if self._modification_handlers.pop(broker, None) is not None:
                self._zk_client.client.unregister_change_handler(paths.broker_id(broker))

    async def _update_leadership_cache(
        self, partitions: Sequence[TopicPartition], why: str
    ) -> None:
        """Read state znodes into partitionLeadershipInfo (updateLeaderAndIsrCache)."""
        ordered = small_table_else_trie(partitions, lambda p: topic_partition_hash(*p))
        found = await self._zk_client.get_topic_partition_states(ordered)
        for partition, state in found.items():
            self._partitions.cache(partition, state, why)

    async def _on_controller_resignation(self) -> None:
        """Handlers, timers, send threads and caches go; `/controller` is not deleted here (spec
        §6.3)."""
        epoch = self.context.epoch
        client = self._zk_client.client
        for child_handler in self._child_handlers:
            client.unregister_child_handler(child_handler.path)
        for handler in (self._preferred_handler, self._reassignment_handler):
            client.unregister_change_handler(handler.path)
        self._unregister_modification_handlers(list(self._modification_handlers))
        for partition in self.context.being_reassigned:
            client.unregister_change_handler(paths.topic_partition_state(*partition))
        self._topics.unwatch_all()
        for task in self._scheduled:
            task.stop()
        self._scheduled.clear()
        await self._channels.shutdown()
        self.context.reset()
        self._host.emit(events.ControllerResigned, epoch)

    # -- brokers -----------------------------------------------------------------------------------

    async def _process_broker_change(self) -> None:
        """Compare the registrations with the cache: new, bounced (a greater czxid), dead (spec
        §6.4)."""
        found, cached = await self._zk_client.get_all_broker_and_epochs(), self.context.live_brokers
        new = sorted(b for b in found if b not in cached)
        dead = sorted(b for b in cached if b not in found)
        bounced = sorted(b for b in found if b in cached and found[b][1] > cached[b][1])
        self._host.emit(
            events.BrokerChange, tuple(new), tuple(dead), tuple(bounced), tuple(sorted(found))
        )
        live = _live(found)
        for broker in new:
            await self._channels.add_broker(live[broker][0])
        for broker in bounced:
            await self._channels.remove_broker(broker)
            await self._channels.add_broker(live[broker][0])
        for broker in dead:
            await self._channels.remove_broker(broker)
        await self._apply_broker_change(live, new, bounced, dead)

    async def _apply_broker_change(
        self,
        live: dict[int, tuple[LiveBroker, int]],
        new: Sequence[int],
        bounced: Sequence[int],
        dead: Sequence[int],
    ) -> None:
        cached = self.context.live_brokers
        if new:
            cached.update({b: live[b] for b in new})
            await self._on_broker_startup(new)
        if bounced:
            for broker in bounced:
                del cached[broker]
            await self._on_broker_failure(bounced)
            cached.update({b: live[b] for b in bounced})
            await self._on_broker_startup(bounced)
        if dead:
            for broker in dead:
                del cached[broker]
            await self._on_broker_failure(dead)

    async def _on_broker_startup(self, brokers: Sequence[int]) -> None:
        """The others hear of the new ones; the new ones hear everything; their replicas go
        online."""
        existing = [b for b in self.context.live_or_shutting_down if b not in brokers]
        await self._send_update_metadata(existing, ())
        await self._send_update_metadata(brokers, tuple(self.context.leadership))
        replicas = self.context.replicas_on_brokers(brokers)
        await self._replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
        await self._partitions.trigger_online_partition_state_change()
        await self._reassignments.resume(
            lambda p: any(b in self.context.assignments[p].target_replicas for b in brokers)
        )
        await self._deletions.resume_for(dict.fromkeys(r.partition.topic for r in replicas))
        await self._register_modification_handlers(brokers)

    async def _on_broker_failure(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self.context.shutting_down.pop(broker, None)
        await self._on_replicas_become_offline(self.context.replicas_on_brokers(brokers))
        self._unregister_modification_handlers(brokers)

    async def _on_replicas_become_offline(self, replicas: Sequence[PartitionAndReplica]) -> None:
        leaderless = self.context.partitions_with_offline_leader()
        await self._partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
        await self._partitions.trigger_online_partition_state_change()
        kept = [r for r in replicas if r.partition.topic not in self.context.topics_to_be_deleted]
        await self._replicas.handle_state_changes(kept, ReplicaState.OFFLINE)
        await self._deletions.fail([r for r in replicas if r not in kept])
        if not leaderless:
            await self._send_update_metadata(self.context.live_or_shutting_down, ())

    async def _process_broker_modifications(self, broker: int) -> None:
        """Endpoints changed: everybody hears of it."""
        if not self.is_active:
            return
        info = await self._zk_client.get_broker(broker)
        known = self.context.live_brokers.get(broker)
        if info is None or known is None or _where(broker, info) == known[0]:
            return
        self.context.live_brokers[broker] = (_where(broker, info), known[1])
        await self._send_update_metadata(self.context.live_or_shutting_down, ())

    # -- topics ------------------------------------------------------------------------------------

    def _topic_modified(self, topic: str) -> None:
        self._put_if_active("PartitionModifications", partial(self._topics.on_modification, topic))

    def _put_if_active(self, name: str, process: Callable[[], Awaitable[object]]) -> None:
        """An event that does nothing unless this broker is controller when its turn comes."""

        async def when_active() -> None:
            if self.is_active:
                await process()

        self._put(name, when_active)

    # -- ISR changes -------------------------------------------------------------------------------

    async def _process_isr_change_notification(self) -> None:
        """List (which sets the watch again), read, re-read the states, tell everybody; and delete
        what was listed, whatever went wrong before (spec §6.6)."""
        numbers = await self._zk_client.get_all_isr_change_notifications()
        try:
            named = await self._zk_client.get_partitions_from_isr_change_notifications(numbers)
            if named:
                await self._update_leadership_cache(named, "notification")
                await self._send_update_metadata(self.context.live_or_shutting_down, named)
        except ZooKeeperError:
            await self._delete_isr_change_notifications(numbers)
            raise
        await self._delete_isr_change_notifications(numbers)

    async def _delete_isr_change_notifications(self, numbers: Sequence[str]) -> None:
        version = self.context.epoch_zk_version
        await self._zk_client.delete_isr_change_notifications(numbers, version)
        if numbers:
            gone = tuple(paths.isr_change_notification_sequence(n) for n in numbers)
            self._host.emit(events.IsrChangeCleared, gone)

    async def _process_log_dir_event_notification(self) -> None:
        numbers = await self._zk_client.get_all_log_dir_event_notifications()
        version = self.context.epoch_zk_version
        await self._zk_client.delete_log_dir_event_notifications(numbers, version)

    async def _send_update_metadata(
        self, brokers: Sequence[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """One UpdateMetadata for these partitions (none: only live brokers and controller)."""
        self._batch.new_batch()
        self._batch.add_update_metadata(brokers, partitions)
        await self._batch.send(self.context.epoch)

    # -- elections and reassignments ---------------------------------------------------------------

    async def _process_preferred_election(self) -> None:
        """The command znode: watch it, and do what it says if it is there."""
        if not self.is_active:
            return
        if not await self._zk_client.register_and_check_existence(self._preferred_handler):
            return
        await self._elect_as_commanded()

    async def _elect_as_commanded(self) -> None:
        """Elect, delete the command whether it was there or not, and look again (spec §2.12)."""
        commanded = await self._zk_client.get_preferred_replica_election()
        await self._elections.elect_preferred(commanded)
        await self._zk_client.delete_preferred_replica_election(self.context.epoch_zk_version)
        self._put("ReplicaLeaderElection", self._process_preferred_election)

    async def _process_reassignment(self) -> None:
        """The command znode of reassignments; new moves begin, then it is watched again."""
        if not self.is_active:
            return
        if await self._zk_client.register_and_check_existence(self._reassignment_handler):
            commanded = await self._zk_client.get_partition_reassignment()
            await self._reassignments.start(dict(commanded))

    def _reassignment_isr_changed(self, partition: TopicPartition) -> None:
        self._put_if_active(
            "PartitionReassignmentIsrChange", partial(self._reassignments.isr_change, partition)
        )

    # -- what brokers ask for ----------------------------------------------------------------------

    def controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        respond: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """A broker is about to stop; answered when its turn in the queue has come."""

        async def process() -> None:
            if not self.is_active:
                respond(ControlledShutdownResponse(Errors.STALE_CONTROLLER_EPOCH))
                return
            try:
                left = await self._shutdowns.shut_down(request.broker, request.broker_epoch)
                respond(ControlledShutdownResponse(Errors.NONE, left))
            except KafkaError as failed:
                respond(ControlledShutdownResponse(failed.error))
            except (ControllerMoved, ZooKeeperError):
                respond(ControlledShutdownResponse(Errors.UNKNOWN_SERVER_ERROR))
                raise

        moved = ControlledShutdownResponse(Errors.STALE_CONTROLLER_EPOCH)
        self.events.put(ControllerEvent("ControlledShutdown", process, lambda: respond(moved)))

    def elect_leaders(
        self,
        partitions: tuple[TopicPartition, ...] | None,
        done: Callable[[dict[TopicPartition, Errors]], None],
    ) -> None:
        """ElectLeaders (preferred) through the API."""

        async def process() -> None:
            done(await self._elections.elect_preferred(partitions))

        self._put_if_active("ReplicaLeaderElection", process)

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        done: Callable[[dict[TopicPartition, Errors]], None],
    ) -> None:
        """AlterPartitionReassignments through the API."""

        async def process() -> None:
            done(await self._reassignments.start_from_api(targets))

        self._put_if_active("ApiPartitionReassignment", process)

    # -- sessions ----------------------------------------------------------------------------------

    async def shutdown(self) -> None:
        """The process ends: resign, without deleting `/controller`."""
        self.events.stop()
        if self.is_active:
            await self._on_controller_resignation()

    async def before_initializing_session(self) -> None:
        """The session has expired: whoever waits in the queue is told, and no event runs between
        the old session and the new one (spec §2.10)."""
        resigned: Promise[None] = Promise(self._host.kernel)

        async def expire() -> None:
            resigned.resolve(None)
            self.active_controller_id = NO_CONTROLLER
            await self._on_controller_resignation()

        for dropped in self.events.clear_and_put(ControllerEvent("Expire", expire)):
            if dropped.preempted is not None:
                dropped.preempted()
        await resigned.wait()

    async def after_initializing_session(self) -> None:
        """Register again, under the new session, and run for election."""
        self._put("RegisterBrokerAndReelect", self._register_broker_and_reelect)

    async def _register_broker_and_reelect(self) -> None:
        await self._register_broker()
        await self._reelect()

    # -- answers -----------------------------------------------------------------------------------

    def _leader_and_isr_answered(self, broker: int, response: LeaderAndIsrResponse) -> None:
        """Only logged, and an event that finds no replica on a failed directory (spec §6.1)."""
        self._put("LeaderAndIsrResponseReceived", _nothing)

    def _deletion_answered(self, broker: int, response: StopReplicaResponse) -> None:
        self._put_if_active(
            "TopicDeletionStopReplicaResponseReceived",
            partial(self._deletions.completed, broker, response),
        )

    def _update_metadata_answered(self, broker: int, response: UpdateMetadataResponse) -> None:
        self._put("UpdateMetadataResponseReceived", _nothing)


async def _nothing() -> None:
    return None


def _where(broker: int, info: BrokerInfo) -> LiveBroker:
    endpoint = info.endpoints[0]
    return LiveBroker(broker, endpoint.host, endpoint.port)


def _live(registered: dict[int, tuple[BrokerInfo, int]]) -> dict[int, tuple[LiveBroker, int]]:
    return {b: (_where(b, info), epoch) for b, (info, epoch) in registered.items()}
