"""All partitions of a broker: reads, appends, roles, and periodic tasks.

Owns `replicaStateChangeLock`, the purgatories and the last seen controller epoch. `partition` has
the rules of one partition, `fetcher` those of fetchers. Source: server/ReplicaManager.scala@2.6.3;
spec §4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from emulator.kafka.broker.alter_isr_manager import RpcAlterIsrManager
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.delayed import DelayedFetch, DelayedProduce, ProduceStatus
from emulator.kafka.broker.delete_records import RecordDeletion
from emulator.kafka.broker.fetch_session import FetchContext
from emulator.kafka.broker.fetch_state import InitialFetchState
from emulator.kafka.broker.fetcher import ReplicaFetcherManager
from emulator.kafka.broker.isr_propagation import IsrPropagation
from emulator.kafka.broker.isr_store import zk_isr_store
from emulator.kafka.broker.leader_partitions import LeaderPartitions
from emulator.kafka.broker.local_reads import FetchedPartitions, LocalReads
from emulator.kafka.broker.log_dirs import LogDirectory
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.pool import Pool
from emulator.kafka.broker.purgatory import Purgatory
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.replica_selector import PreferredReplicas
from emulator.kafka.broker.role_order import as_added, by_partition
from emulator.kafka.model.errors import NO_ERROR, Errors, KafkaError
from emulator.kafka.model.topic_names import INTERNAL_TOPICS
from emulator.kafka.profiles.guards.consumers import PREFERRED_REPLICA_AT_ONCE
from emulator.kafka.profiles.guards.following import (
    NEW_FOLLOWER_ANSWERS,
    REPLICA_MADE_WITHOUT_LEADER,
    STOPPED_REPLICA_ANSWERS,
    TRUNCATION_BY_EPOCH,
)
from emulator.kafka.profiles.guards.isr import (
    ACKS_ARE_ALL_OR_ONE,
    ISR_CHANGE_NOTIFICATIONS,
    ISR_EXPIRATION_AT_HALF_LAG,
    PARTITIONS_FAIL_ALONE,
)
from emulator.kafka.protocol.messages import (
    NO_EPOCH,
    EpochEndOffset,
    FetchRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LiveBroker,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from emulator.kernel.sync import Monitor
from emulator.trace import events
from emulator.trace.values import PartitionState, TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError

EPOCH_DURING_DELETE = -2

Produced = tuple[ProducedPartition, ...]
BrokerLookup = Callable[[int], LiveBroker | None]
OnLeadershipChange = Callable[[list[TopicPartition], list[TopicPartition]], None]


class ReplicaManager:
    """The broker's replicas."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        logs: LogManager,
        metadata_cache: MetadataCache,
        leader_quota: ReplicationQuotaManager,
        draw: Callable[[int], int],
        alter_isr: RpcAlterIsrManager | None = None,
    ) -> None:
        """`draw(n)` returns a number below n. ISR changes go through `alter_isr`, or to ZooKeeper
        without it."""
        self._context, self._logs, self._metadata_cache = context, logs, metadata_cache
        self._draw = draw
        self.propagation = IsrPropagation(context, zk_client)
        self._alter_isr = alter_isr
        self._store = alter_isr or zk_isr_store(
            zk_client, self.propagation.record_isr_change, context.guards
        )
        self.state_change_lock = Monitor(context.kernel, "replicaStateChangeLock")
        self.partitions: Pool[Partition] = Pool()
        self._leader_partitions = LeaderPartitions(context)
        self.reads = LocalReads(
            context,
            self.partitions,
            self.error_of_unhosted,
            leader_quota,
            PreferredReplicas(context, metadata_cache),
        )
        self._redirects_at_once = PREFERRED_REPLICA_AT_ONCE in context.guards
        self.offline: dict[TopicPartition, None] = {}
        self._unread: dict[TopicPartition, None] = {}
        self.controller_epoch = 0
        self.fetchers: ReplicaFetcherManager
        """Set when the broker is built, because fetchers look up partitions here."""
        self._produce_purgatory = Purgatory(context, "Produce")
        self._fetch_purgatory = Purgatory(context, "Fetch")
        self.deletion = RecordDeletion(
            context, self.partitions, logs, metadata_cache, self.error_of_unhosted
        )
        self._checkpointing = False
        self.is_shutting_down = False
        self.on_leadership_change: OnLeadershipChange = lambda leads, follows: None
        """Called with the partitions that this broker newly leads and newly follows."""

    async def startup(self) -> None:
        """Start the periodic tasks one shortly after the other; they keep this phase (spec §4.1).
        In 2.7 leaders propose in a run of isr-expiration what the next task sends
        (ReplicaManager.scala@2.7.2 startup).
        """
        context = self._context
        # Half the limit: a follower leaves after 1 to 1.5 times the limit, instead of up to 2
        # times.
        lag_ms = context.config.replica_lag_time_max_ms
        period_ms = lag_ms // 2 if ISR_EXPIRATION_AT_HALF_LAG in context.guards else lag_ms
        context.scheduler.schedule("isr-expiration", self._maybe_shrink_isr, period_ms)
        if self._alter_isr is not None:
            await context.kernel.checkpoint("boot.alter_isr")
            self._alter_isr.start()
        elif ISR_CHANGE_NOTIFICATIONS in context.guards:
            await context.kernel.checkpoint("boot.propagation")
            self.propagation.start()

    async def _maybe_shrink_isr(self) -> None:
        """One run of isr-expiration over every hosted partition. An exception ends the run, and the
        remaining partitions wait for the next one (KAFKA-9672)."""
        listed = self._leader_partitions
        # With KAFKA-947 (0.8) there is no lock; before, it is held during all writes to ZooKeeper.
        async with listed.lock:
            try:
                for partition in self.partitions.in_order():
                    if partition.idle_fetches.is_caught_up or not listed.has(partition.partition):
                        continue
                    if not partition.idle_fetches.check_caught_up():
                        await partition.leader_isr.maybe_shrink()
            except (ZooKeeperError, KafkaError) as error:
                self._context.failed("isr-expiration", error)

    # -- parked requests ---------------------------------------------------------------------------

    async def check_and_complete_fetch(self, partition: TopicPartition) -> None:
        if self._fetch_purgatory.is_watched(partition):
            await self._fetch_purgatory.check_and_complete(partition)

    async def check_and_complete_all(self, partition: TopicPartition) -> None:
        # Kafka's order (DelayedOperations.checkAndCompleteAll): fetches, produces, deletions.
        if self._fetch_purgatory.is_watched(partition):
            await self._fetch_purgatory.check_and_complete(partition)
        if self._produce_purgatory.is_watched(partition):
            await self._produce_purgatory.check_and_complete(partition)
        if self.deletion.is_watched(partition):
            await self.deletion.check_and_complete(partition)

    async def check_and_complete_delete_records(self, partition: TopicPartition) -> None:
        await self.deletion.check_and_complete(partition)

    def about_to_change(self, partition: TopicPartition) -> None:
        self._fetch_purgatory.touched(partition)

    # -- produce -----------------------------------------------------------------------------------

    async def append_records(
        self,
        request: ProduceRequest,
        respond: Callable[[Produced], None],
        *,
        internal_topics_allowed: bool = False,
    ) -> None:
        """Append to the local logs. acks=all waits in the purgatory if anything was appended; in
        0.8 so do acks above 1. Only brokers write to internal topics."""
        waits = request.acks not in (0, 1)
        # From 0.9 on any other value is rejected.
        if request.acks not in (-1, 0, 1) and ACKS_ARE_ALL_OR_ONE in self._context.guards:
            respond(
                tuple(
                    ProducedPartition(p.partition, Errors.INVALID_REQUIRED_ACKS, -1)
                    for p in request.partitions
                )
            )
            return
        statuses: dict[TopicPartition, ProduceStatus] = {}
        # One partition's error does not undo the others: a produce is not atomic.
        for p in request.partitions:
            if p.partition.topic in INTERNAL_TOPICS and not internal_topics_allowed:
                statuses[p.partition] = ProduceStatus(Errors.INVALID_TOPIC_EXCEPTION)
            else:
                statuses[p.partition] = await self._append_to_local_log(p, request.acks)
        if waits and any(s.error is NO_ERROR for s in statuses.values()):
            parked = DelayedProduce(
                request, statuses, self.partitions.get, self.error_of_unhosted, respond
            )
            await self._produce_purgatory.try_complete_else_watch(parked, list(statuses))
        else:
            respond(
                tuple([ProducedPartition(p, s.error, s.base_offset) for p, s in statuses.items()])
            )

    async def _append_to_local_log(self, produced: ProducePartition, acks: int) -> ProduceStatus:
        hosted = self.partitions.get(produced.partition)
        if hosted is None:
            return ProduceStatus(self.error_of_unhosted(produced.partition))
        try:
            batch = await hosted.append_records_to_leader(
                produced.records, produced.size, acks, produced.data, produced.producer
            )
        except KafkaError as failed:
            if failed.error is Errors.NOT_ENOUGH_REPLICAS:
                # Logged with its stack trace. NOT_LEADER_OR_FOLLOWER, for example, is not
                # (ReplicaManager.scala@2.6.3 appendToLocalLog).
                await self._context.kernel.checkpoint("append_refused")
            return ProduceStatus(failed.error)
        return ProduceStatus(NO_ERROR, batch.next_offset, batch.base_offset)

    def error_of_unhosted(self, partition: TopicPartition) -> Errors:
        """The error for a partition that is not hosted: its log directory failed, or others host
        it, or it is unknown (getPartitionOrError)."""
        if partition in self.offline:
            return Errors.KAFKA_STORAGE_ERROR
        return self._metadata_cache.error_of_unhosted(partition)

    # -- fetch -------------------------------------------------------------------------------------

    async def fetch_messages(
        self,
        request: FetchRequest,
        context: FetchContext,
        respond: Callable[[FetchedPartitions], None],
        unknown: Collection[TopicPartition] = (),
    ) -> None:
        """Read; record the follower's state (once per arriving fetch, never when a delayed one
        completes); respond at once if there is enough, otherwise wait (fetchMessages). `unknown`:
        partitions of the fetch that are refused, not read."""
        max_bytes = min(request.max_bytes, self._context.config.fetch_max_bytes)
        follower, session, reads = request.replica_id, context.session, self.reads
        read = await reads.read(follower, request.rack_id, context, max_bytes, unknown)
        # After the reads of all partitions: whether the follower is caught up depends on the log
        # ends before the reads. If this expands an ISR, the response for all partitions waits here
        # for ZooKeeper.
        if follower >= 0:
            await reads.update_follower_fetch_state(follower, context, read)
        if (
            request.max_wait_ms <= 0
            or not (len(session.partitions) - len(unknown) if session else read.partitions)
            or read.readable >= request.min_bytes
            or read.has_error
            or read.has_newer_hw
            or read.has_diverging_epoch
            or (read.redirected and self._redirects_at_once)
        ):
            respond(read.answers)
            return
        parked = DelayedFetch(
            request,
            context,
            max_bytes,
            reads,
            self.partitions.get,
            respond,
            read.redirected,
            unknown,
        )
        # Idle partitions are not among the keys below; one that wakes is then watched.
        if session is not None:
            session.on_wake = partial(self._fetch_purgatory.watch, parked)
        await self._fetch_purgatory.try_complete_else_watch(
            parked, [fetch.partition for fetch in context.in_turn(unknown)]
        )

    async def last_offset_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest
    ) -> OffsetsForLeaderEpochResponse:
        """The end offsets of epochs, for followers that truncate."""
        answers = []
        for query in request.partitions:
            hosted = self.partitions.get(query.partition)
            if hosted is None:
                error = self.error_of_unhosted(query.partition)
                answers.append(EpochEndOffset(query.partition, error, -1, -1))
                continue
            end = await hosted.end_offset_for_epoch(query.current_leader_epoch, query.leader_epoch)
            if isinstance(end, Errors):
                answers.append(EpochEndOffset(query.partition, end, -1, -1))
            else:
                answers.append(
                    EpochEndOffset(query.partition, NO_ERROR, end.epoch, end.start_offset)
                )
        return OffsetsForLeaderEpochResponse(tuple(answers))

    # -- control requests --------------------------------------------------------------------------

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Process one LeaderAndIsr request under replicaStateChangeLock (spec §4.3)."""
        for state in request.states:
            self._context.emit(
                events.LeaderAndIsr, request.controller_id, request.controller_epoch, state
            )
        me = self._context.broker
        # Lock order: replicaStateChangeLock before any leaderIsrUpdateLock. StopReplica and
        # UpdateMetadata use it too: if a partition's lock waits for a write to ZooKeeper, all
        # requests from the controller wait (H22).
        async with self.state_change_lock:
            if request.controller_epoch < self.controller_epoch:
                self._context.refused(request, Errors.STALE_CONTROLLER_EPOCH)
                return LeaderAndIsrResponse(Errors.STALE_CONTROLLER_EPOCH)
            self.controller_epoch = request.controller_epoch
            errors: dict[TopicPartition, Errors] = {}
            # The epoch above counts even if every partition below is ignored.
            self._unread.clear()
            accepted: list[tuple[Partition, PartitionState]] = []
            for state in request.states:
                hosted = self.partitions.get(state.partition)
                if hosted is None and state.partition not in self.offline:
                    # Before the epoch check: the object exists even if the request is ignored.
                    hosted = Partition(
                        self._context,
                        state.partition,
                        self._store,
                        self,
                        self._logs,
                        self._metadata_cache,
                    )
                    self.partitions[state.partition] = hosted
                error = NO_ERROR
                if hosted is None:
                    error = Errors.KAFKA_STORAGE_ERROR
                elif state.leader_epoch <= hosted.leader_epoch:
                    # An equal epoch is ignored like a lower one. Both get the error of a stale
                    # controller; only Kafka's log distinguishes them.
                    error = Errors.STALE_CONTROLLER_EPOCH
                elif me not in state.replicas:
                    error = Errors.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    accepted.append((hosted, state))
                errors[state.partition] = error
                if error is not NO_ERROR:
                    self._context.emit(
                        events.LeaderAndIsrIgnored,
                        request.controller_id,
                        request.controller_epoch,
                        state,
                        error.name,
                    )
            leader_of: BrokerLookup = self._metadata_cache.alive_broker
            if self._context.profile.leaders_in_request:
                # Up to 0.8.2 followers use the request's live leaders; 0.9 ignores that list.
                leader_of = {live.broker: live for live in request.live_leaders}.get
            # Leaders first, then followers (spec §4.3). Kafka filters a HashMap into two new ones:
            # keys of one bucket change their order again.
            profile = self._context.profile
            accepted = by_partition(accepted, profile)
            leads = await self._make_leaders(
                by_partition([(p, s) for p, s in accepted if s.leader == me], profile), errors
            )
            follows = await self._make_followers(
                by_partition([(p, s) for p, s in accepted if s.leader != me], profile),
                errors,
                leader_of,
            )
            # The partition object was created, but its log could not be.
            self._mark_offline(
                state.partition
                for state in request.states
                if (hosted := self.partitions.get(state.partition)) is not None
                and hosted.log is None
                and state.partition not in self._unread
            )
            self._start_high_watermark_checkpoint()
            # Last: partitions may have moved between the threads of two leaders.
            await self.fetchers.shutdown_idle_fetcher_threads()
            self.on_leadership_change(leads, follows)
            if accepted:
                await self._charge_for_roles(leads, follows)
            return LeaderAndIsrResponse(NO_ERROR, tuple(errors.items()))

    async def _charge_for_roles(
        self, leads: list[TopicPartition], follows: list[TopicPartition]
    ) -> None:
        """From the last log line about a role to the response."""
        kernel = self._context.kernel
        await kernel.checkpoint("roles_taken")
        if self._context.profile.logs_roles_last:
            return
        await kernel.checkpoint("roles_taken.late")
        if leads:
            await kernel.checkpoint("leaders_taken.late")
        if follows:
            await kernel.checkpoint("followers_taken.late")

    def _mark_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """HostedPartition.Offline: permanent for this process."""
        for partition in list(partitions):
            hosted = self.partitions.remove(partition)
            if hosted is not None:
                # Its followers get KAFKA_STORAGE_ERROR with their next fetch.
                hosted.wake()
            self.offline[partition] = None

    async def _make_leaders(
        self, states: list[tuple[Partition, PartitionState]], errors: dict[TopicPartition, Errors]
    ) -> list[TopicPartition]:
        """Make these partitions leaders. All their fetchers are stopped before the first one
        changes, so that no fetcher appends to a leader's log. Returns the new leaders."""
        leads: list[TopicPartition] = []
        if not states:
            return leads
        await self.fetchers.remove_fetcher_for_partitions([p.partition for p, _ in states])
        for hosted, state in states:
            try:
                if await hosted.make_leader(state):
                    leads.append(hosted.partition)
            except KafkaError as failed:
                errors[hosted.partition] = failed.error
            except ZooKeeperError as failed:
                self._fails_alone(hosted.partition, "makeLeader", failed)
        # 0.8.1 lists them here: an exception above leaves leaders that isr-expiration does not
        # check (KAFKA-1483).
        await self._leader_partitions.add(p.partition for p, _ in states)
        return leads

    def _fails_alone(self, partition: TopicPartition, what: str, failed: ZooKeeperError) -> None:
        """The configuration of a new log could not be read. From 2.7 on the partition keeps its new
        epoch and the response has no error (KAFKA-9769); before, the whole request fails."""
        if PARTITIONS_FAIL_ALONE not in self._context.guards:
            raise failed
        self._unread[partition] = None
        self._context.failed(what, failed)

    async def _make_follower(
        self, hosted: Partition, state: PartitionState, leader_of: BrokerLookup
    ) -> bool:
        """Make this broker a follower of the new leader; True if the leader has changed."""
        if leader_of(state.leader) is not None:
            return await hosted.make_follower(state)
        # Create only the replica, so that its high watermark stays in the checkpoint (KAFKA-1647).
        # It keeps its old leader, epoch and fetcher.
        if REPLICA_MADE_WITHOUT_LEADER in self._context.guards:
            await hosted.create_log_if_not_exists(is_new=state.is_new)
        else:
            self._unread[hosted.partition] = None
        return False

    async def _make_followers(
        self,
        states: list[tuple[Partition, PartitionState]],
        errors: dict[TopicPartition, Errors],
        leader_of: BrokerLookup,
    ) -> list[TopicPartition]:
        """Make these partitions followers, if the new leader is known to be live. Otherwise only
        the log is created, without an error in the response (KAFKA-4443). Up to 0.10.2 they
        truncate to their high watermark here (KIP-101). Returns the partitions with a new leader.
        """
        changed: list[Partition] = []
        # Before the first one follows: isr-expiration must not write for a partition that another
        # broker leads (0.8.1).
        if states:
            await self._leader_partitions.remove(p.partition for p, _ in states)
            if self._context.profile.logs_roles_last:
                # Kafka changes the fetchers before that line, ours after the event that stands for
                # it. So the time that they take passes here.
                await self._context.kernel.checkpoint("followers_taken.early")
        for hosted, state in states:
            await self._context.kernel.checkpoint("make_follower")
            try:
                if await self._make_follower(hosted, state, leader_of):
                    changed.append(hosted)
            except KafkaError as failed:
                errors[hosted.partition] = failed.error
            except ZooKeeperError as failed:
                self._fails_alone(hosted.partition, "makeFollower", failed)
        follows = [p.partition for p in changed]
        if not changed:
            return follows
        # Remove them from the old leader's thread even if the leader stays: a response in flight
        # belongs to the old epoch.
        await self.fetchers.remove_fetcher_for_partitions([p.partition for p in changed])
        truncates_first = TRUNCATION_BY_EPOCH not in self._context.guards
        if truncates_first:
            changed = [p for p in changed if self._truncate_to_high_watermark(p, errors)]
        # Requests that waited for this broker as leader are completed now: it no longer leads.
        answering = changed if NEW_FOLLOWER_ANSWERS in self._context.guards else []
        for hosted in answering:
            await self.check_and_complete_all(hosted.partition)
        if self.is_shutting_down:
            # It became a follower because it shuts down: fetching would bring it back into the ISR.
            return follows
        starting = {
            p.partition: initial_fetch_state(
                p,
                leader_of,
                truncating=not truncates_first,
                truncates_on_fetch=self._context.truncates_on_fetch,
            )
            for p in changed
        }
        in_order = as_added(starting, self._context.profile, self._draw)
        await self.fetchers.add_fetcher_for_partitions(in_order)
        return follows

    @staticmethod
    def _truncate_to_high_watermark(
        hosted: Partition, errors: dict[TopicPartition, Errors]
    ) -> bool:
        """Up to 0.10.2; False if the log's directory has failed."""
        assert hosted.log is not None
        try:
            hosted.truncate_to(hosted.log.high_watermark)
        except KafkaError as failed:
            errors[hosted.partition] = failed.error
            return False
        return True

    def _start_high_watermark_checkpoint(self) -> None:
        """Start the checkpoint task with the first LeaderAndIsr
        (startHighWatermarkCheckPointThread)."""
        # Not earlier, because not all logs are open: a first run would omit the others from the
        # file, and their high watermarks would be 0 after a crash.
        if self._checkpointing:
            return
        self._checkpointing = True

        async def checkpoint() -> None:
            self._logs.checkpoint_high_watermarks()

        self._context.scheduler.schedule(
            "highwatermark-checkpoint",
            checkpoint,
            self._context.config.replica_high_watermark_checkpoint_interval_ms,
        )

    async def maybe_update_metadata_cache(
        self, request: UpdateMetadataRequest
    ) -> tuple[TopicPartition, ...]:
        """Update the cache, then the last seen controller epoch; KafkaError for an older
        controller."""
        async with self.state_change_lock:
            if request.controller_epoch < self.controller_epoch:
                self._context.refused(request, Errors.STALE_CONTROLLER_EPOCH)
                raise KafkaError(Errors.STALE_CONTROLLER_EPOCH)
            # Under the lock of LeaderAndIsr and StopReplica: all three check and set the epoch.
            removed = await self._metadata_cache.update(request)
            for partition in removed:
                hosted = self.partitions.get(partition)
                if hosted is not None:
                    # The next fetch of it is refused, but idle partitions are not looked up.
                    hosted.idle_fetches.wake()
            self.controller_epoch = request.controller_epoch
            return removed

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Process one StopReplica request (spec §4.4): stop all fetchers, then delete what is to be
        deleted. Without the delete flag the partition keeps its role: a leader still believes that
        it leads.
        """
        for stop in request.partitions:
            self._context.emit(
                events.StopReplica, request.controller_id, request.controller_epoch, *stop
            )
        async with self.state_change_lock:
            if request.controller_epoch < self.controller_epoch:
                self._context.refused(request, Errors.STALE_CONTROLLER_EPOCH)
                return StopReplicaResponse(Errors.STALE_CONTROLLER_EPOCH)
            self.controller_epoch = request.controller_epoch
            errors: dict[TopicPartition, Errors] = {}
            stopped: list[StopReplicaPartition] = []
            for stop in request.partitions:
                hosted = self.partitions.get(stop.partition)
                # A broker obeys deletions, requests without an epoch, and greater epochs (KIP-570);
                # equal epochs only from 3.4.1 on. So from 2.6.0 to 3.4.0 a broker continues to
                # fetch after a StopReplica of a controlled shutdown (spec §4.4, §6.11).
                error = NO_ERROR
                if stop.partition in self.offline:
                    error = Errors.KAFKA_STORAGE_ERROR
                elif (
                    hosted is not None
                    and stop.leader_epoch not in (EPOCH_DURING_DELETE, NO_EPOCH)
                    and stop.leader_epoch <= hosted.leader_epoch
                ):
                    error = Errors.FENCED_LEADER_EPOCH
                errors[stop.partition] = error
                if error is NO_ERROR:
                    stopped.append(stop)
                else:
                    self._context.emit(
                        events.StopReplicaIgnored,
                        request.controller_id,
                        request.controller_epoch,
                        *stop,
                        error.name,
                    )
            # All fetchers stop before the first log is deleted: none may append to a deleted log.
            await self.fetchers.remove_fetcher_for_partitions([s.partition for s in stopped])
            for stop in stopped:
                if stop.delete:
                    errors[stop.partition] = await self._delete_partition(stop.partition)
                    await self._context.kernel.checkpoint("delete_log")
                    # A deleted partition of `__consumer_offsets` has no coordinator here any more.
                    self.on_leadership_change([], [stop.partition])
                # If this broker leads, no LeaderAndIsr need follow that would complete them.
                if STOPPED_REPLICA_ANSWERS in self._context.guards:
                    await self.check_and_complete_all(stop.partition)
            await self._context.kernel.checkpoint("replicas_stopped")
            return StopReplicaResponse(NO_ERROR, tuple(errors.items()))

    async def _delete_partition(self, partition: TopicPartition) -> Errors:
        """Delete the partition and its log."""
        hosted = self.partitions.get(partition)
        if hosted is not None and hosted.directory is not None:
            try:
                self._logs.check(hosted.directory)
            except KafkaError as failed:
                return failed.error
        # Removed from the list first: a fetch that arrives while `delete` waits for the lock finds
        # nothing.
        self.partitions.remove(partition)
        if hosted is not None:
            await hosted.delete()
        self._logs.delete(partition)
        return NO_ERROR

    async def shutdown(self) -> None:
        """Stop the fetchers, then checkpoint the high watermarks and flush the logs."""
        # Fetchers first: a high watermark that moves after the checkpoint would be lost.
        await self.fetchers.shutdown()
        self._logs.checkpoint_high_watermarks()
        self._logs.shutdown()

    async def take_offline(self, directory: LogDirectory) -> tuple[TopicPartition, ...]:
        """A log directory has failed: stop serving its partitions."""
        async with self.state_change_lock:
            removed = [p for p, hosted in self.partitions.items() if hosted.directory is directory]
            await self.fetchers.remove_fetcher_for_partitions(removed)
            self._mark_offline(removed)
            return tuple(removed)


def initial_fetch_state(
    hosted: Partition,
    leader_of: BrokerLookup,
    *,
    truncating: bool = True,
    truncates_on_fetch: bool = False,
) -> InitialFetchState:
    """The state with which a partition is added to a fetcher."""
    assert hosted.leader_replica_id is not None and hosted.log is not None
    leader = leader_of(hosted.leader_replica_id)
    assert leader is not None, "the leader was alive when the role changed"
    # A fetch at the log end carries the last epoch, and the response says where to truncate
    # (ReplicaManager.scala@2.8.2 initialFetchOffset).
    if truncates_on_fetch and hosted.log.epochs.latest_epoch is not None:
        truncating = False
    # The high watermark: the fetcher truncates to it if the log has no epoch.
    offset = hosted.log.high_watermark if truncating else hosted.log.log_end_offset
    return InitialFetchState(leader, hosted.leader_epoch, offset, truncating)
