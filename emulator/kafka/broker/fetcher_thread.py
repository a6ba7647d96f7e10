"""One fetcher thread: truncates added partitions, then fetches, in a loop.

A partition that got records moves to the end of the order, so that the response limit cannot starve
others. A partition with an error is left out for a back-off. The thread knows the local partitions
and one leader, but no controller. Sources: server/AbstractFetcherThread.scala,
ReplicaFetcherThread.scala@2.6.3; spec §5.2-§5.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emulator.kafka.broker.blocking_send import ReplicaFetcherBlockingSend
from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_session import FetchSessionHandler
from emulator.kafka.broker.fetch_state import (
    InitialFetchState,
    PartitionFetchState,
    PartitionStates,
)
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.truncation import offset_truncation_state
from emulator.kafka.model.errors import NO_ERROR, Errors, KafkaError, UnexpectedAppendOffset
from emulator.kafka.model.offset_log import UNDEFINED_EPOCH, DivergingEpoch
from emulator.kafka.profiles.guards.consumers import FOLLOWER_HW_COMPLETES_FETCHES
from emulator.kafka.profiles.guards.following import (
    FAILED_PARTITIONS_LEAVE,
    FETCH_FENCING,
    FETCHER_SHUTDOWN_ENDS_FETCH,
    LOG_START_FOLLOWED,
    ONE_BACK_OFF,
    TRUNCATION_BEFORE_WATERMARK,
    TRUNCATION_BY_EPOCH,
    TRUNCATION_IN_ROUNDS,
)
from emulator.kafka.protocol.messages import (
    NO_EPOCH,
    EpochEndOffset,
    EpochQuery,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    LiveBroker,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from emulator.kafka.protocol.transport import Disconnected, Network
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Condition, Monitor, Promise
from emulator.trace import events
from emulator.trace.values import Offset, TopicPartition
from zk.errors import ZooKeeperError

HostedPartition = Callable[[TopicPartition], Partition | None]
ToFetch = tuple[tuple[FetchPartition, ...], tuple[TopicPartition, ...]]
"""Partitions to send in a request, and to forget."""


class ReplicaFetcherThread:
    """`ReplicaFetcherThread-<fetcher id>-<leader>`."""

    def __init__(
        self,
        context: BrokerContext,
        network: Network,
        hosted: HostedPartition,
        quota: ReplicationQuotaManager,
        out_of_range: OutOfRange,
        leader: LiveBroker,
        fetcher_id: int,
        failed_partitions: dict[TopicPartition, None],
    ) -> None:
        self._context, self._hosted = context, hosted
        self._quota, self._out_of_range = quota, out_of_range
        self._failed_partitions = failed_partitions
        self._with_errors: dict[TopicPartition, str] = {}
        """What is delayed when a response has been processed, with the reason."""
        self._truncates_by_epoch = TRUNCATION_BY_EPOCH in context.guards
        self._failed_leave = FAILED_PARTITIONS_LEAVE in context.guards
        self._in_rounds = TRUNCATION_IN_ROUNDS in context.guards
        self._truncates_first = TRUNCATION_BEFORE_WATERMARK in context.guards
        self._follows_log_start = LOG_START_FOLLOWED in context.guards
        self._fenced = FETCH_FENCING in context.guards
        self._one_back_off = ONE_BACK_OFF in context.guards
        self._completes_fetches = FOLLOWER_HW_COMPLETES_FETCHES in context.guards
        self._with_new_hw: list[Partition] = []
        self._shutdown_ends_fetch = FETCHER_SHUTDOWN_ENDS_FETCH in context.guards
        self.leader, self.fetcher_id = leader, fetcher_id
        self.partitions = PartitionStates(context.profile)
        self._map_lock = Monitor(context.kernel, "partitionMapLock")
        self._map_changed = Condition(context.kernel, self._map_lock)
        self._session = FetchSessionHandler()
        self._endpoint = ReplicaFetcherBlockingSend(context, network, leader, fetcher_id)
        self._running = True
        self._ended: Promise[None] = Promise(context.kernel)
        name = f"ReplicaFetcherThread-{fetcher_id}-{leader.broker}"
        context.emit(events.FetcherStarted, leader.broker, fetcher_id)
        self.task: Task = context.spawn(name, self._run())

    # -- called by the manager ---------------------------------------------------------------------

    async def add_partitions(self, states: dict[TopicPartition, InitialFetchState]) -> None:
        """Add partitions. A partition that is already here in the same epoch continues; others
        truncate first."""
        # Waits while the thread processes a response: it holds the lock for all of its partitions.
        async with self._map_lock:
            for partition, initial in states.items():
                state = self.partitions.get(partition)
                # The same epoch: the partition was truncated already.
                if state is None or state.current_leader_epoch != initial.current_leader_epoch:
                    state = PartitionFetchState(
                        initial.init_offset,
                        None,
                        initial.current_leader_epoch,
                        0,
                        truncating=initial.truncating,
                    )
                self.partitions.update_and_move_to_end(partition, state)
            self.partitions.added()
            self.partitions.has_other_changes = True
            self._map_changed.signal_all()

    async def remove_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        async with self._map_lock:
            for partition in partitions:
                self.partitions.remove(partition)

    async def shutdown(self) -> None:
        """Wait for the thread to end (AbstractFetcherThread.scala@2.6.3 shutdown)."""
        # Before the connection closes: the thread must not treat the closing as a failed leader.
        self._running = False
        if self._shutdown_ends_fetch:
            self._endpoint.close()
        async with self._map_lock:
            # Wakes the thread from a back-off.
            self._map_changed.signal_all()
        await self._ended.wait()
        self._endpoint.close()

    # -- the loop ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        checkpoint = self._context.kernel.checkpoint
        await checkpoint("fetcher_start")
        # The thread starts without partitions (addFetcherForPartitions). Partitions added between
        # its first check for truncation and its first check for fetching wait for a whole back-off:
        # they are not ready to be fetched, and no signal follows. Up to 0.10 there is only one
        # check, under one lock.
        has_second_look = self._truncates_by_epoch
        while self._running:
            # Each turn has its own causes: none of its events follow from the previous turn.
            self._context.kernel.cause = -1
            if self.partitions.has_other_changes:
                await self._maybe_truncate()
            if has_second_look:
                await checkpoint("fetcher_look")
                has_second_look = False
            await self._maybe_fetch()
            # After the response, without the lock (ReplicaFetcherThread.scala@3.3.2 doWork).
            for hosted in self._with_new_hw:
                await hosted.complete_delayed_fetches()
            self._with_new_hw.clear()
        self._context.emit(events.FetcherStopped, self.leader.broker, self.fetcher_id)
        self._ended.resolve(None)

    async def _maybe_fetch(self) -> None:
        """One turn of the loop (AbstractFetcherThread.scala@2.6.3 maybeFetch)."""
        async with self._map_lock:
            to_fetch = self._build_fetch()
            if to_fetch is None:
                # The wait releases the lock, and a partition added during the wait wakes this
                # thread. A partition added before is not ready until it is truncated, and waits the
                # whole back-off.
                await self._back_off()
                return
        # Without the lock: partitions may be added and removed while the request is in flight. The
        # thread may have been shut down while it waited for the lock.
        if self._session.is_full and self._context.truncates_on_fetch:
            # The response may say where the two logs part.
            await self._context.kernel.checkpoint("fetcher_truncate")
        if self._running:
            await self._process_fetch_request(*to_fetch)
            if self._with_errors:
                await self._handle_partitions_with_errors()

    async def _back_off(self) -> None:
        await self._map_changed.wait(self._context.config.replica_fetch_backoff_ms * 1000)

    def _build_fetch(self) -> ToFetch | None:
        """The partitions that are ready, in order. Throttled out-of-sync partitions are left out
        (shouldFollowerThrottle). Without any, a request still has the leader forget the session's
        partitions, and so ends the session; None if it has none (ReplicaFetcherThread.scala@2.6.3
        buildFetch)."""
        states = self.partitions
        # Only offsets have changed: the session's state of the other partitions is still valid.
        if not (states.has_other_changes or self._session.is_full or self._quota.throttles):
            moved = [self._fetch_of(p, states[p]) for p in states.changed]
            states.changed.clear()
            return self._session.build_moved([fetch for fetch in moved if fetch is not None]), ()
        now_us = self._context.kernel.now
        fetches = {}
        for partition, state in states.items():
            # An in-sync replica is never throttled: throttling would remove it from the ISR.
            if not state.is_ready_for_fetch(now_us) or (
                not state.is_replica_in_sync
                and self._quota.is_throttled(partition)
                and self._quota.is_quota_exceeded(self._context.now_ms())
            ):
                continue
            fetch = self._fetch_of(partition, state)
            if fetch is not None:
                fetches[partition] = fetch
        states.has_other_changes = len(fetches) < len(states)
        states.changed.clear()
        if states.in_hash_map:
            fetches = {partition: fetches[partition] for partition in states.request_order(fetches)}
        return self._session.build(fetches) if fetches or self._session.can_forget else None

    def _fetch_of(
        self, partition: TopicPartition, state: PartitionFetchState
    ) -> FetchPartition | None:
        hosted, context = self._hosted(partition), self._context
        log = hosted.log if hosted is not None else None
        if log is None:
            return None
        # Before version 12 requests do not carry the log's last epoch.
        last_epoch = log.epochs.latest_epoch if context.truncates_on_fetch else None
        return FetchPartition(
            partition,
            self._current_leader_epoch(state),
            state.fetch_offset,
            log.log_start_offset,
            context.config.replica_fetch_max_bytes,
            UNDEFINED_EPOCH if last_epoch is None else last_epoch,
        )

    def _current_leader_epoch(self, state: PartitionFetchState) -> int:
        """The epoch for requests, which before 2.1 do not carry one (KIP-320)."""
        return state.current_leader_epoch if self._fenced else NO_EPOCH

    async def _process_fetch_request(
        self, fetches: tuple[FetchPartition, ...], forgotten: tuple[TopicPartition, ...]
    ) -> None:
        """Send one Fetch and process the response for each partition."""
        context, config = self._context, self._context.config
        context.emit(
            events.FetchSent,
            self.leader.broker,
            tuple([Offset(fetch.partition, fetch.fetch_offset) for fetch in fetches]),
            self._session.epoch,
        )
        request = FetchRequest(
            context.broker,
            config.replica_fetch_wait_max_ms,
            config.replica_fetch_min_bytes,
            config.replica_fetch_response_max_bytes,
            self._session.session_id,
            self._session.epoch,
            fetches,
            forgotten,
            context.broker_epoch,
        )
        try:
            response = await self._endpoint.send(request)
        except Disconnected:
            await self._on_disconnected()
            return
        assert isinstance(response, FetchResponse)
        if not self._session.handle_response(response) or not response.partitions:
            return
        diverging: dict[TopicPartition, DivergingEpoch] = {}
        async with self._map_lock:
            for answer in response.partitions:
                partition = answer.partition
                state, fetch = self.partitions.get(partition), self._session.fetch_of(partition)
                # Only if the partition's state is the one that was fetched: it may have been
                # removed, truncated or added again while the request was in flight.
                if (
                    state is None
                    or fetch is None
                    or fetch.fetch_offset != state.fetch_offset
                    or not state.is_ready_for_fetch(context.kernel.now)
                ):
                    continue
                if answer.error is NO_ERROR:
                    diverges = answer.diverging_epoch if context.truncates_on_fetch else None
                    if diverges is not None:
                        diverging[partition] = diverges
                    # Up to 3.3.2 the high watermark is applied before the truncation, limited only
                    # by the log end that is about to go (KAFKA-14704).
                    if diverges is None or not self._truncates_first:
                        if answer.batches:
                            await self._process_partition_data(answer, state)
                        else:
                            self._process_offsets(answer)
                elif answer.error is Errors.OFFSET_OUT_OF_RANGE:
                    await self._handle_out_of_range(partition, state, fetch.current_leader_epoch)
                elif answer.error is Errors.FENCED_LEADER_EPOCH:
                    self._on_partition_fenced(partition, fetch.current_leader_epoch)
                else:
                    # Mostly NOT_LEADER_OR_FOLLOWER, no longer or not yet. The same leader is tried
                    # again until the controller sends a new one.
                    self._with_errors[partition] = answer.error.name
        if diverging:
            await self._truncate_on_fetch_response(diverging)

    async def _on_disconnected(self) -> None:
        """The leader may have died with its session: the next request contains every partition."""
        self._session.close_existing()
        if self._running:
            async with self._map_lock:
                if not self._one_back_off:
                    # Twice the back-off in total: the thread waits here, then delays every
                    # partition (AbstractFetcherThread.scala@2.6.3 processFetchRequest).
                    await self._back_off()
                self._with_errors = dict.fromkeys(self.partitions, "DISCONNECTED")

    async def _process_partition_data(
        self, answer: FetchedPartition, state: PartitionFetchState
    ) -> None:
        """Append the records, set the high watermark, and move the partition to the end of the
        order."""
        partition, batches = answer.partition, answer.batches
        hosted = self._hosted(partition)
        if hosted is None or hosted.log is None:
            return
        try:
            await hosted.append_records_to_follower(batches)
        except UnexpectedAppendOffset as error:
            if self._failed_leave:
                self._mark_partition_failed(partition, f"{type(error).__name__}: {error.message}")
            else:
                # Before KIP-461 (2.3) any other exception ended the thread, and the fetching of all
                # its partitions.
                self._running = False
                self._context.failed("ReplicaFetcherThread", error)
            return
        except KafkaError:
            self._handle_storage_error(partition)
            return
        # After the append: the leader's high watermark is limited to the local log end.
        if not self._update_offsets(hosted, answer):
            return
        if self._quota.throttles and self._quota.is_throttled(partition):
            self._quota.record(answer.size, self._context.now_ms())
        self.partitions.set_fetch_offset(partition, batches[-1].next_offset)
        state.lag = max(0, answer.high_watermark - state.fetch_offset)
        state.delayed_until_us = 0
        self.partitions.update_and_move_to_end(partition, state)

    def _process_offsets(self, answer: FetchedPartition) -> None:
        """No records came, perhaps a high watermark: the partition keeps its place in the order."""
        hosted = self._hosted(answer.partition)
        if hosted is not None and hosted.log is not None:
            self._update_offsets(hosted, answer)

    def _update_offsets(self, hosted: Partition, answer: FetchedPartition) -> bool:
        """The high watermark first: the log starts at it at the latest. False: the partition has
        failed."""
        if hosted.update_follower_high_watermark(answer.high_watermark) and self._completes_fetches:
            self._with_new_hw.append(hosted)
        log, start = hosted.log, answer.log_start_offset
        assert log is not None
        if not self._follows_log_start or start <= log.log_start_offset:
            return True
        if start > log.high_watermark:
            # Beside a diverging epoch: the leader's log starts behind this one's end. Kafka's log
            # throws, and what throws fails the partition.
            self._mark_partition_failed(hosted.partition, Errors.OFFSET_OUT_OF_RANGE.name)
            return False
        try:
            hosted.increment_log_start(start, "leader offset incremented")
        except KafkaError:
            self._handle_storage_error(hosted.partition)
            return False
        # The next request says so: DeleteRecords may wait for it.
        self.partitions.changed[hosted.partition] = None
        return True

    async def _handle_out_of_range(
        self, partition: TopicPartition, state: PartitionFetchState, request_epoch: int
    ) -> None:
        """Get the leader's log end and, if necessary, its log start (fetchOffsetAndTruncate)."""
        hosted = self._hosted(partition)
        assert hosted is not None

        async def list_offset(*, earliest: bool) -> int:
            epoch = self._current_leader_epoch(state)
            response = await self._endpoint.send(
                ListOffsetsRequest(self._context.broker, partition, epoch, earliest)
            )
            assert isinstance(response, ListOffsetsResponse)
            if response.error is not NO_ERROR:
                raise KafkaError(response.error)
            return response.offset

        try:
            # partitionMapLock is held during these requests, as in Kafka: a thread that adds
            # partitions here waits for them.
            offset, state.lag = await self._out_of_range.next_fetch(hosted, list_offset)
        except (Disconnected, ZooKeeperError, KafkaError) as error:
            # Any other exception delays the partition, even a failed disk: it is not marked as
            # failed here (AbstractFetcherThread.scala@2.6.3 handleOutOfRangeError).
            if isinstance(error, KafkaError) and error.error is Errors.FENCED_LEADER_EPOCH:
                self._on_partition_fenced(partition, request_epoch)
            else:
                self._with_errors[partition] = Errors.OFFSET_OUT_OF_RANGE.name
            return
        self.partitions.set_fetch_offset(partition, offset)
        self.partitions.update_and_move_to_end(partition, state)

    # -- errors of one partition -------------------------------------------------------------------

    async def _handle_partitions_with_errors(self) -> None:
        """Those of a response come after all others (handlePartitionsWithErrors)."""
        async with self._map_lock:
            self._delay_partitions()

    def _delay_partitions(self) -> None:
        """Leave the partitions with errors out for a back-off, at the end of the order; one that is
        already delayed keeps its time (delayPartitions)."""
        now_us = self._context.kernel.now
        backoff_ms = self._context.config.replica_fetch_backoff_ms
        for partition in self.partitions.error_order(self._with_errors):
            state = self.partitions.get(partition)
            if state is None or state.is_delayed(now_us):
                continue
            state.delayed_until_us = now_us + backoff_ms * 1000
            self.partitions.update_and_move_to_end(partition, state)
            self.partitions.has_other_changes = True
            reason, leader = self._with_errors[partition], self.leader.broker
            self._context.emit(events.PartitionDelayed, partition, leader, backoff_ms, reason)
        self._with_errors.clear()

    def _on_partition_fenced(self, partition: TopicPartition, request_epoch: int) -> None:
        """The leader has a greater epoch: the partition fails until the next LeaderAndIsr, unless
        that arrived while the request was in flight."""
        state = self.partitions.get(partition)
        if state is not None and state.current_leader_epoch == request_epoch:
            self._mark_partition_failed(partition, Errors.FENCED_LEADER_EPOCH.name)
        else:
            self._with_errors[partition] = Errors.FENCED_LEADER_EPOCH.name

    def _handle_storage_error(self, partition: TopicPartition) -> None:
        """The partition's log cannot be written (KIP-461)."""
        if self._failed_leave:
            self._mark_partition_failed(partition, Errors.KAFKA_STORAGE_ERROR.name)
        else:
            self._with_errors[partition] = Errors.KAFKA_STORAGE_ERROR.name

    def _mark_partition_failed(self, partition: TopicPartition, reason: str) -> None:
        """Remove the partition from this thread until the next LeaderAndIsr
        (markPartitionFailed)."""
        self.partitions.remove(partition)
        self._failed_partitions[partition] = None
        self._context.emit(events.PartitionMarkedFailed, partition, self.leader.broker, reason)

    # -- truncation --------------------------------------------------------------------------------

    async def _maybe_truncate(self) -> None:
        """For added partitions, query the end of their last epoch at the leader; those without an
        epoch truncate to the high watermark."""
        queries: list[EpochQuery] = []
        has_truncated = False
        async with self._map_lock:
            now_us = self._context.kernel.now
            for partition, state in list(self.partitions.items()):
                if not state.truncating or state.is_delayed(now_us):
                    continue
                hosted = self._hosted(partition)
                log = hosted.log if hosted is not None else None
                epoch = log.epochs.latest_epoch if log is not None else None
                if epoch is not None:
                    current_epoch = self._current_leader_epoch(state)
                    queries.append(EpochQuery(partition, current_epoch, epoch))
                    continue
                # The log has no epoch, for example because it is empty. Records below the high
                # watermark are committed, so the leader has them (truncateToHighWatermark).
                if hosted is not None and log is not None:
                    try:
                        hosted.truncate_to(state.fetch_offset)
                    except KafkaError:
                        self._handle_storage_error(partition)
                        continue
                    state.fetch_offset = min(state.fetch_offset, log.log_end_offset)
                state.truncating = False
                has_truncated = True
            self._delay_partitions()
            if has_truncated:
                self.partitions.rebuild()
        if queries:
            # The lock is not held during the request: partitions may be added and removed
            # meanwhile.
            if self._in_rounds:
                await self._context.kernel.checkpoint("fetcher_truncate")
            await self._truncate_to_epoch_end_offsets(queries)

    async def _truncate_to_epoch_end_offsets(self, queries: list[EpochQuery]) -> None:
        """Query the end offsets of these epochs at the leader and truncate to them
        (fetchEpochEndOffsets, maybeTruncateToEpochEndOffsets)."""
        try:
            response = await self._endpoint.send(
                OffsetsForLeaderEpochRequest(self._context.broker, tuple(queries))
            )
            assert isinstance(response, OffsetsForLeaderEpochResponse)
            answers = response.partitions
        except Disconnected:
            # Each partition is delayed: the back-off prevents a tight loop of queries.
            answers = tuple(
                EpochEndOffset(q.partition, Errors.UNKNOWN_SERVER_ERROR, -1, -1) for q in queries
            )
        async with self._map_lock:
            for query, answer in zip(queries, answers, strict=True):
                state = self.partitions.get(query.partition)
                # Not if the epoch changed while the request was in flight (KAFKA-7786).
                if state is None or self._current_leader_epoch(state) != query.current_leader_epoch:
                    continue
                if answer.error is Errors.FENCED_LEADER_EPOCH:
                    self._on_partition_fenced(query.partition, query.current_leader_epoch)
                    continue
                if answer.error is not NO_ERROR:
                    self._with_errors[query.partition] = answer.error.name
                    continue
                # Before 2.0 the response's epoch is ignored, and there is one round (KIP-279).
                epoch = answer.leader_epoch if self._in_rounds else UNDEFINED_EPOCH
                self._truncate_to_epoch_end_offset(query.partition, epoch, answer.end_offset)
            self._delay_partitions()
            self.partitions.rebuild()

    async def _truncate_on_fetch_response(
        self, diverging: dict[TopicPartition, DivergingEpoch]
    ) -> None:
        """Truncate partitions whose log diverges from the leader's; the next fetch carries the
        then last epoch."""
        async with self._map_lock:
            for partition, end in diverging.items():
                self._truncate_to_epoch_end_offset(partition, end.epoch, end.end_offset)
            self.partitions.rebuild()
            self.partitions.has_other_changes = True

    def _truncate_to_epoch_end_offset(
        self, partition: TopicPartition, leader_epoch: int, end_offset: int
    ) -> None:
        """Apply one result of the leader (maybeTruncateToEpochEndOffsets)."""
        state, hosted = self.partitions.get(partition), self._hosted(partition)
        if state is None or hosted is None or hosted.log is None:
            return
        truncation = offset_truncation_state(
            hosted.log, state.fetch_offset, leader_epoch, end_offset
        )
        try:
            hosted.truncate_to(truncation.offset)
        except KafkaError:
            self._handle_storage_error(partition)
            return
        # If not done, the next turn queries the epoch that the log ends with now, or fetches with
        # it.
        state.fetch_offset = truncation.offset
        state.truncating = not (truncation.done or self._context.truncates_on_fetch)
