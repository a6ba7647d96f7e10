"""The controller that every broker runs; one of them is active.

Owns election, fail-over, and the reaction to brokers, topics and ISR changes; the state machines
own the transitions. The controller knows its host only through `ports.Host`, never the broker's
code. Source: controller/KafkaController.scala@2.6.3; spec §6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from emulator.kafka.controller.brokers import Brokers
from emulator.kafka.controller.context import INITIAL_CONTROLLER_EPOCH
from emulator.kafka.controller.elections import Elections
from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.event_manager import (
    ControllerEvent,
    ControllerEventManager,
    take_turn,
)
from emulator.kafka.controller.handlers import ChildChangeHandler, NodeChangeHandler
from emulator.kafka.controller.isr_changes import IsrChangeNotifications
from emulator.kafka.controller.log_dirs import LogDirectories
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.ports import Host
from emulator.kafka.controller.reassignment import Reassignments
from emulator.kafka.controller.requests import ControllerRequests
from emulator.kafka.controller.subscriptions import commands_read_early, subscribe
from emulator.kafka.controller.topic_deletion import TopicDeletionManager
from emulator.kafka.controller.topics import Topics
from emulator.kafka.profiles.guards.controller import (
    ATOMIC_ELECTION,
    EPOCH_ONLY_FROM_ELECTION,
    FENCED_CONTROLLER_WRITES,
    ONLY_THE_ACTIVE_LISTENS,
    OWN_CONTROLLER_ZNODE_KEPT,
    REPLACED_RESIGNS,
    UPDATE_METADATA_FIRST,
)
from emulator.kafka.profiles.guards.isr import ISR_CHANGE_NOTIFICATIONS
from emulator.kafka.protocol.transport import Network
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Promise
from emulator.trace import events
from zk import paths
from zk.client.codec import decode_controller
from zk.client.kafka_zk_client import KafkaZkClient
from zk.client.zk_requests import NO_FENCING
from zk.errors import ControllerMoved, ZooKeeperError

NO_CONTROLLER = -1
# onControllerFailover: scheduleAutoLeaderRebalanceTask(delay = 5 seconds).
FIRST_REBALANCE_MS = 5000
FEATURES = 5
"""The version of registrations that name features: the controller keeps `/feature` (KIP-584)."""
ISR_CHANGE = "IsrChangeNotification"


class KafkaController:
    """One broker's controller."""

    def __init__(
        self,
        host: Host,
        zk_client: KafkaZkClient,
        network: Network,
        register_broker: Callable[[], Awaitable[None]],
    ) -> None:
        """`register_broker` registers this broker under the current session."""
        self._host, self._zk_client = host, zk_client
        self._register_broker = register_broker
        self.active_controller_id = NO_CONTROLLER
        self.events = ControllerEventManager(host, self._process)
        self.parts = ControllerParts(
            host,
            zk_client,
            network,
            put_if_active=self._put_if_active,
            leader_and_isr_answered=lambda broker, response: self._put_if_active(
                "LeaderAndIsrResponseReceived",
                partial(self._log_dirs.on_leader_and_isr_response, broker, response),
            ),
            update_metadata_answered=lambda _broker, _response: self._put(
                "UpdateMetadataResponseReceived", take_turn
            ),
            deletion_answered=lambda broker, response: self._put_if_active(
                "TopicDeletionStopReplicaResponseReceived",
                partial(self._deletions.completed, broker, response),
            ),
            force_move=self._trigger_controller_move,
        )
        self.context = self.parts.context
        self._deletions = TopicDeletionManager(self.parts)
        self._elections = Elections(self.parts)
        self._reassignments = Reassignments(self.parts, self._deletions)
        self._topics = Topics(self.parts, self._deletions)
        self.brokers = Brokers(self.parts, self._deletions, self._reassignments)
        self._log_dirs = LogDirectories(self.parts, self.brokers)
        self._isr_changes = IsrChangeNotifications(self.parts, self._reassignments)
        self.requests = ControllerRequests(
            self.parts,
            self.events,
            lambda: self.is_active,
            self._elections,
            self._reassignments,
        )
        self._rebalance_task: Task | None = None
        self._controller_handler = NodeChangeHandler(
            paths.CONTROLLER,
            created=self._controller_changed,
            deleted=lambda: self._put("Reelect", self._on_controller_deleted),
            changed=self._controller_changed,
        )
        self._epoch_handler = NodeChangeHandler(
            paths.CONTROLLER_EPOCH,
            changed=lambda: self._put("ControllerEpochChange", self._take_over_epoch),
        )
        self._blocking = host.profile.zookeeper_client == "zkclient"
        self._fenced = FENCED_CONTROLLER_WRITES in host.guards
        self._has_isr_notifications = ISR_CHANGE_NOTIFICATIONS in host.guards
        self._child_handlers = [
            ChildChangeHandler(path, partial(self._put_listed, path, name, process))
            for path, name, process in (
                (paths.BROKER_IDS, "BrokerChange", self.brokers.on_change),
                (paths.TOPICS, "TopicChange", self._topics.on_change),
                (paths.DELETE_TOPICS, "TopicDeletion", self._topics.on_deletion),
                (
                    paths.LOG_DIR_EVENT_NOTIFICATION,
                    "LogDirEventNotification",
                    self._log_dirs.on_notification,
                ),
                (paths.ISR_CHANGE_NOTIFICATION, ISR_CHANGE, self._isr_changes.on_change),
            )
            if host.profile.has_znode(path)
            and (path != paths.ISR_CHANGE_NOTIFICATION or self._has_isr_notifications)
            and (path != paths.DELETE_TOPICS or self._deletions.watches_markers)
        ]
        self._command_handlers = (self._elections.handler, self._reassignments.handler)

    def _put_listed(
        self, path: str, name: str, process: Callable[[Sequence[str] | None], Awaitable[None]]
    ) -> None:
        """ZkClient passes the list of children with the event; later clients read it again."""
        with_list = partial(process, self._zk_client.client.listed(path))
        self._put_if_active(name, with_list, late=with_list if name == ISR_CHANGE else None)

    def _controller_changed(self) -> None:
        """ZkClient passes the new data with the event; later clients read it again."""
        data = self._zk_client.client.shown(paths.CONTROLLER)

        async def on_data() -> None:
            assert data is not None
            was_active = self.is_active
            # Up to 0.8.2 a controller that reads another broker's id does not resign.
            if was_active and REPLACED_RESIGNS not in self._host.guards:
                return
            self.active_controller_id = decode_controller(data).broker_id
            if was_active and not self.is_active:
                await self._on_controller_resignation()

        self._put("ControllerChange", self._maybe_resign if data is None else on_data)

    async def _take_over_epoch(self) -> None:
        """Up to 0.8.1 every broker watched `/controller_epoch`, and a broker that has an epoch
        takes over any value written there (KAFKA-1096; ControllerEpochListener@0.8.1.1, bytecode).
        """
        written = await self._zk_client.get_controller_epoch()
        if written is not None and self.context.epoch != INITIAL_CONTROLLER_EPOCH:
            self.context.epoch = written[0]

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self.active_controller_id == self._host.broker

    def startup(self) -> None:
        """Start the event thread; the first event runs for election."""
        self._zk_client.client.register_state_handler(self)
        if self._host.profile.controller_threads == "callbacks":
            self._zk_client.client.wait_for_callbacks(self.events.drained)

        async def process_startup() -> None:
            if EPOCH_ONLY_FROM_ELECTION not in self._host.guards:
                await self._zk_client.register_and_check_existence(self._epoch_handler)
            # The watch before the election: if another broker wins, this one learns when its znode
            # goes.
            await self._zk_client.register_and_check_existence(self._controller_handler)
            await self._elect()

        self._put("Startup", process_startup)
        self.events.start()

    def _put(self, name: str, process: Callable[[], Awaitable[None]]) -> None:
        self.events.put(ControllerEvent(name, process))

    def _put_if_active(
        self,
        name: str,
        process: Callable[[], Awaitable[object]],
        late: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """See PutIfActive."""

        # Checked when the event runs, not when it is queued: this broker may have resigned
        # meanwhile.
        async def when_active() -> None:
            if self.is_active:
                await process()
            elif late is not None and ONLY_THE_ACTIVE_LISTENS not in self._host.guards:
                await late()

        self._put(name, when_active)

    async def _process(self, event: ControllerEvent) -> None:
        """Process one event. An exception is logged and ends the event. ControllerMoved also makes
        this controller check `/controller`; an exception there is logged too."""
        try:
            try:
                await event.process()
            except ControllerMoved:
                await self._maybe_resign()
        except (ZooKeeperError, ControllerFailure) as error:
            self._host.failed(event.name, error)

    # -- election ----------------------------------------------------------------------------------

    async def _reelect(self) -> None:
        await self._maybe_resign()
        await self._elect()

    async def _on_controller_deleted(self) -> None:
        if self._host.profile.controller_threads != "callbacks":
            await self._reelect()
            return
        # Up to 0.10 the listener knows that the znode is gone, and does not read it for that
        # (ZookeeperLeaderElector.scala@0.10.2.2 handleDataDeleted).
        await self._resign_and_elect()

    async def _resign_and_elect(self) -> None:
        if self.is_active:
            self.active_controller_id = NO_CONTROLLER
            await self._on_controller_resignation()
        await self._elect()

    async def _on_new_session(self) -> None:
        """SessionExpirationListener.handleNewSession, up to 1.0."""
        if self._host.profile.controller_threads != "callbacks":
            await self._reelect()
        elif (
            OWN_CONTROLLER_ZNODE_KEPT not in self._host.guards
            or await self._zk_client.get_controller_id() != self._host.broker
        ):
            await self._resign_and_elect()

    async def _elect(self) -> None:
        """Try to create `/controller`; if it exists, remember whose it is (elect)."""
        current = await self._zk_client.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if current is None else current
        # The id may be this broker's own, left by an earlier process or session: it then counts as
        # active without a fail-over (H27).
        if current is not None:
            return
        zk_client, broker = self._zk_client, self._host.broker
        try:
            if ATOMIC_ELECTION in self._host.guards:
                epoch, version = await zk_client.get_or_create_controller_epoch()
                await self._host.kernel.checkpoint("controller_candidate")
                epoch, version = await zk_client.register_controller_and_increment_controller_epoch(
                    broker, epoch, version
                )
            else:
                # Before 2.1 there are two steps: another broker may be elected between them (H8).
                await zk_client.create_controller(broker)
                await self._host.kernel.checkpoint("controller_created")
                await self._first_use("created")
                epoch, version = await zk_client.increment_controller_epoch()
            self.context.epoch = epoch
            self.context.epoch_zk_version = version if self._fenced else NO_FENCING
            # From now on this version fences every write of this controller (KAFKA-6082).
            self.active_controller_id = broker
            self._host.emit(events.ControllerElected, epoch, version)
            await self._on_controller_failover()
        except ControllerMoved:
            await self._maybe_resign()
        # Any other failure of the fail-over: give `/controller` up, so that another broker can try.
        except (ZooKeeperError, ControllerFailure) as error:
            self._host.failed("election", error)
            await self._trigger_controller_move()

    async def _maybe_resign(self) -> None:
        """Watch `/controller` again, read it, and resign if it was this broker's and no longer is
        (maybeResign)."""
        was_active = self.is_active
        # The watch before the read: a change between the two comes as an event.
        if not self._blocking:
            await self._zk_client.register_and_check_existence(self._controller_handler)
        current = await self._zk_client.get_controller_id()
        self.active_controller_id = NO_CONTROLLER if current is None else current
        if was_active and not self.is_active:
            await self._on_controller_resignation()

    async def _trigger_controller_move(self) -> None:
        """This controller failed: give up `/controller` (triggerControllerMove)."""
        if self._fenced:
            current = await self._zk_client.get_controller_id()
            self.active_controller_id = NO_CONTROLLER if current is None else current
            if not self.is_active:
                return
        try:
            # Read the version before the resignation resets it. A fenced delete means that another
            # broker has `/controller` already. Before 2.1 the delete is unconditional and may
            # remove a successor's znode (H7).
            version = self.context.epoch_zk_version if self._fenced else NO_FENCING
            self.active_controller_id = NO_CONTROLLER
            await self._on_controller_resignation()
            await self._zk_client.delete_controller(version)
        except ControllerMoved as moved:
            self._host.failed("controller move", moved)

    # -- fail-over ---------------------------------------------------------------------------------

    async def _on_controller_failover(self) -> None:
        """Everything that a new controller does before its first event (spec §6.2)."""
        # First set watches, then delete the notifications unread, then read everything. A change
        # after a watch is set comes as an event; an earlier change is in the state that is read.
        # Deleting notifications after the read would lose changes (H10).
        context, version = self.context, self.context.epoch_zk_version
        await self._first_use("start")
        if self._host.profile.registration_version >= FEATURES:
            # The request for `/feature` is not emulated, only its duration.
            await self._first_use("features")
        if self._blocking:
            handlers = (self._child_handlers, *self._command_handlers)
            await subscribe(self._zk_client, *handlers, version)
        else:
            # The first list of children sets the child watches.
            for child_handler in self._child_handlers:
                self._zk_client.client.register_child_handler(child_handler)
            for handler in self._command_handlers:
                await self._zk_client.register_and_check_existence(handler)
            log_dir_events = await self._zk_client.get_all_log_dir_event_notifications()
            await self._zk_client.delete_log_dir_event_notifications(log_dir_events, version)
            if self._has_isr_notifications:
                await self._isr_changes.purge()
        await self._initialize_controller_context()
        early = await commands_read_early(self._zk_client, self._host.profile)
        if early.moves is not None:
            await self._first_use("commands")
        deletions = await self._zk_client.get_topic_deletions()
        # A topic with an offline replica or a reassignment is not deleted yet: every replica has to
        # respond before the znodes are deleted.
        _, offline = context.online_and_offline_replicas()
        blocked = {r.partition.topic for r in offline} | {p.topic for p in context.being_reassigned}
        await self._deletions.init(deletions, [t for t in deletions if t in blocked])
        # From 0.10.2 on, without partitions: brokers need the addresses of live brokers and the new
        # controller's epoch before a LeaderAndIsr names a leader (KAFKA-4443, H28).
        is_metadata_first = UPDATE_METADATA_FIRST in self._host.guards
        # Not `_first_use`: recorded controllers with a lock take this time as well.
        await self._host.kernel.checkpoint("failover.state_machines")
        if context.live_brokers:
            await self._first_use("update_metadata")
        if is_metadata_first:
            await self.parts.send_update_metadata_to_all(())
        # Replicas before partitions: from 2.3 on, dead replicas have left their ISRs when leaders
        # are elected.
        await self.parts.replicas.startup()
        await self.parts.partitions.startup()
        if not is_metadata_first:
            await self.parts.send_update_metadata_to_all(tuple(context.leadership))
        if self._blocking:
            await self._topics.subscribe(list(context.all_topics))
        await self._reassignments.initialize(early.moves)
        await self._deletions.resume()
        # After the state machines have started: an election is a transition and needs each
        # partition's state.
        await self._elections.pending(early.elections)
        await self._first_use("end")
        if self._host.config.auto_leader_rebalance_enable:
            self._schedule_auto_leader_rebalance(FIRST_REBALANCE_MS)

    async def _first_use(self, step: str) -> None:
        """A fail-over is the first use of most of a controller's code. With an event queue there is
        several times as much of it as with a lock."""
        if self._host.profile.controller_threads == "event-queue":
            await self._host.kernel.checkpoint(f"failover.{step}")

    def _schedule_auto_leader_rebalance(self, delay_ms: int) -> None:
        """auto-leader-rebalance-task: scheduled once, and again after its event was processed."""

        async def rebalance() -> None:
            seconds = self._host.config.leader_imbalance_check_interval_seconds
            try:
                await self._elections.rebalance()
            except (ControllerMoved, ZooKeeperError, ControllerFailure):
                # Scheduled again even after ControllerMoved: the resignation that follows stops the
                # task.
                self._schedule_auto_leader_rebalance(seconds * 1000)
                raise
            self._schedule_auto_leader_rebalance(seconds * 1000)

        async def put() -> None:
            self._put_if_active("AutoPreferredReplicaLeaderElection", rebalance)

        self._rebalance_task = self._host.schedule_once("auto-leader-rebalance-task", put, delay_ms)

    async def _initialize_controller_context(self) -> None:
        """Read brokers, topics, assignments and states from ZooKeeper."""
        context = self.context
        await self.brokers.read()
        if not self._blocking:
            await self._first_use("brokers")
        topics = await self._zk_client.get_all_topics(register_watch=True)
        context.all_topics = dict.fromkeys(topics)
        await self._first_use("topics")
        if not self._blocking:
            self._topics.watch(topics)
        context.assignments = await self._zk_client.get_full_replica_assignment_for_topics(topics)
        context.being_reassigned = {
            p: None for p, a in context.assignments.items() if a.is_being_reassigned
        }
        # A broker that was shutting down under the last controller has to send its request again.
        context.leadership.clear()
        context.shutting_down.clear()
        await self.brokers.watch(context.live_brokers)
        await self.parts.update_leadership_cache(context.all_partitions(), "fail-over")
        await self.parts.channels.startup([where for where, _ in context.live_brokers.values()])

    async def _on_controller_resignation(self) -> None:
        """Remove handlers, timers, send threads and caches, at every expiry; no znode is deleted
        (spec §6.3)."""
        # An inactive controller runs this too: then there is nothing to undo and no epoch to
        # report.
        epoch = self.context.epoch
        client = self._zk_client.client
        for child_handler in self._child_handlers:
            client.unregister_child_handler(child_handler.path)
        for handler in self._command_handlers:
            client.unregister_change_handler(handler.path)
        self.brokers.unwatch_all()
        self._reassignments.resign()
        self._topics.unwatch_all()
        if self._rebalance_task is not None:
            self._rebalance_task.stop()
            self._rebalance_task = None
        # The send threads continue with their queues until they are stopped: a controller that was
        # replaced while it was paused still reaches brokers that do not know the next epoch (H6).
        if epoch:
            await self._host.kernel.checkpoint("controller_resign")
        await self.parts.channels.shutdown()
        self.context.reset()
        if epoch:
            self._host.emit(events.ControllerResigned, epoch)

    # -- unclean elections ---------------------------------------------------------------

    def enable_topic_unclean_leader_election(self, topic: str) -> None:
        """A topic's configuration now allows unclean elections."""
        if self.is_active:
            trigger = self.parts.partitions.trigger_online_partition_state_change
            self._put_if_active("TopicUncleanLeaderElectionEnable", partial(trigger, topic))

    def enable_default_unclean_leader_election(self) -> None:
        """The broker's default now allows unclean elections."""
        if self.is_active:
            trigger = self.parts.partitions.trigger_online_partition_state_change
            self._put_if_active("UncleanLeaderElectionEnable", trigger)

    # -- sessions ----------------------------------------------------------------------------------

    async def shutdown(self) -> None:
        """The process ends: resign after the current event, without deleting `/controller`."""
        await self.events.close()
        await self._on_controller_resignation()

    async def before_initializing_session(self) -> None:
        """The session has expired: cancel queued events and notify their callers. No event runs
        between the old session and the new one (spec §2.10)."""
        resigned: Promise[None] = Promise(self._host.kernel)

        async def expire() -> None:
            resigned.resolve(None)
            self.active_controller_id = NO_CONTROLLER
            await self._on_controller_resignation()

        # clearAndPut: the current event ends first, in the old session, where its writes fail.
        # Queued events do not run in the new session, which opens when this returns.
        for dropped in self.events.clear_and_put(ControllerEvent("Expire", expire)):
            if dropped.preempted is not None:
                dropped.preempted()
        await resigned.wait()

    async def after_initializing_session(self) -> None:
        """Register again under the new session and run for election. With ZkClient run for election
        only: the next listener registers, up to 0.10 after this one's work, in 1.0 beside it."""
        if self._blocking:
            self._put("Reelect", self._on_new_session)
            return

        async def register_broker_and_reelect() -> None:
            await self._register_broker()
            await self._reelect()

        self._put("RegisterBrokerAndReelect", register_broker_and_reelect)
