"""Followers' fetchers: one thread and one connection per (source broker, fetcher id).

A loop truncates what was added, then fetches; partitions that got records move to the end of the
order, those with an error are left out for a back-off. Knows the local partitions and the network,
no controller. Sources: server/AbstractFetcherManager.scala, AbstractFetcherThread.scala,
ReplicaFetcherThread.scala@2.6.3; spec §5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_session import FetchSessionHandler
from emulator.kafka.broker.fetch_state import InitialFetchState, PartitionFetchState, fetcher_id
from emulator.kafka.broker.out_of_range import OutOfRange
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.truncation import offset_truncation_state
from emulator.kafka.model.errors import Errors, KafkaError, UnexpectedAppendOffset
from emulator.kafka.model.offset_log import UNDEFINED_EPOCH
from emulator.kafka.profiles.guards.following import (
    FAILED_PARTITIONS_LEAVE,
    FETCH_FENCING,
    TRUNCATION_BY_EPOCH,
    TRUNCATION_IN_ROUNDS,
)
from emulator.kafka.protocol.messages import (
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
    Request,
)
from emulator.kafka.protocol.transport import Connection, Disconnected, Network
from emulator.kernel.scheduler import Task
from emulator.kernel.sync import Condition, Monitor, Promise
from emulator.trace import events
from emulator.trace.values import Offset, TopicPartition
from zk.errors import ZooKeeperError

NO_EPOCH = -1
HostedPartition = Callable[[TopicPartition], Partition | None]
Built = tuple[tuple[FetchPartition, ...], tuple[TopicPartition, ...]]
"""Partitions to name in a request, and to forget."""


class ReplicaFetcherManager:
    """All fetcher threads of a broker."""

    def __init__(
        self,
        context: BrokerContext,
        network: Network,
        hosted: HostedPartition,
        quota: ReplicationQuotaManager,
        out_of_range: OutOfRange,
    ) -> None:
        self._context, self._network, self._hosted, self._quota = context, network, hosted, quota
        self._out_of_range = out_of_range
        self._lock = Monitor(context.kernel, "fetcherManager")
        self.threads: dict[tuple[int, int], ReplicaFetcherThread] = {}
        self.failed_partitions: dict[TopicPartition, None] = {}

    async def add_fetcher_for_partitions(
        self, states: dict[TopicPartition, InitialFetchState]
    ) -> None:
        """Group by source broker and fetcher id; start the threads that are missing."""
        await self._lock.enter()
        try:
            groups: dict[tuple[int, int], dict[TopicPartition, InitialFetchState]] = {}
            for partition, state in states.items():
                number = fetcher_id(partition, self._context.config.num_replica_fetchers)
                groups.setdefault((state.leader.broker, number), {})[partition] = state
                self.failed_partitions.pop(partition, None)
            for key, group in groups.items():
                thread = await self._thread(key, next(iter(group.values())).leader)
                await thread.add_partitions(group)
        finally:
            self._lock.leave()

    async def _thread(self, key: tuple[int, int], leader: LiveBroker) -> ReplicaFetcherThread:
        thread = self.threads.get(key)
        if thread is not None and thread.leader == leader:
            return thread
        if thread is not None:
            await thread.shutdown()
        thread = ReplicaFetcherThread(
            self._context,
            self._network,
            self._hosted,
            self._quota,
            self._out_of_range,
            leader,
            key[1],
            self._failed,
        )
        self.threads[key] = thread
        await self._context.kernel.checkpoint("fetcher_add")
        return thread

    def _failed(self, partition: TopicPartition) -> None:
        self.failed_partitions[partition] = None

    async def remove_fetcher_for_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        await self._lock.enter()
        try:
            gone = list(partitions)
            for thread in self.threads.values():
                await thread.remove_partitions(gone)
            for partition in gone:
                self.failed_partitions.pop(partition, None)
        finally:
            self._lock.leave()

    async def shutdown_idle_fetcher_threads(self) -> None:
        """Threads without partitions end."""
        await self._lock.enter()
        try:
            for key in [k for k, thread in self.threads.items() if not thread.partitions]:
                await self.threads.pop(key).shutdown()
        finally:
            self._lock.leave()

    async def shutdown(self) -> None:
        """All threads end."""
        await self._lock.enter()
        try:
            for thread in self.threads.values():
                await thread.shutdown()
            self.threads.clear()
        finally:
            self._lock.leave()


class ReplicaFetcherThread:
    """One fetcher: `ReplicaFetcherThread-<fetcher id>-<leader>`."""

    def __init__(
        self,
        context: BrokerContext,
        network: Network,
        hosted: HostedPartition,
        quota: ReplicationQuotaManager,
        out_of_range: OutOfRange,
        leader: LiveBroker,
        number: int,
        failed: Callable[[TopicPartition], None],
    ) -> None:
        self._context, self._network, self._hosted = context, network, hosted
        self._quota, self._out_of_range, self._failed = quota, out_of_range, failed
        self._looks_twice = TRUNCATION_BY_EPOCH in context.guards
        self._failed_leave = FAILED_PARTITIONS_LEAVE in context.guards
        self._in_rounds = TRUNCATION_IN_ROUNDS in context.guards
        self._fenced = FETCH_FENCING in context.guards
        self.leader, self.fetcher_id = leader, number
        self.partitions: dict[TopicPartition, PartitionFetchState] = {}
        self._moved: dict[TopicPartition, None] = {}
        self._look_at_all = True
        self._map_lock = Monitor(context.kernel, "partitionMapLock")
        self._map_condition = Condition(context.kernel, self._map_lock)
        self._session = FetchSessionHandler()
        self._connection: Connection | None = None
        self._running = True
        self._ended: Promise[None] = Promise(context.kernel)
        name = f"ReplicaFetcherThread-{number}-{leader.broker}"
        context.emit(events.FetcherStarted, leader.broker, number)
        self.task: Task = context.spawn(name, self._run())

    # -- what the manager does ---------------------------------------------------------------------

    async def add_partitions(self, states: dict[TopicPartition, InitialFetchState]) -> None:
        """A partition that is already here in the same epoch goes on as it is; others truncate
        first."""
        await self._map_lock.enter()
        try:
            for partition, state in states.items():
                current = self.partitions.pop(partition, None)
                if current is None or current.current_leader_epoch != state.current_leader_epoch:
                    current = PartitionFetchState(
                        state.init_offset,
                        None,
                        state.current_leader_epoch,
                        0,
                        truncating=state.truncating,
                    )
                self.partitions[partition] = current
            self._look_at_all = True
            self._map_condition.signal_all()
        finally:
            self._map_lock.leave()

    async def remove_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        await self._map_lock.enter()
        try:
            for partition in partitions:
                self.partitions.pop(partition, None)
            self._look_at_all = True
        finally:
            self._map_lock.leave()

    async def shutdown(self) -> None:
        """Close the connection, which ends a request in flight, and wait for the thread."""
        self._running = False
        if self._connection is not None:
            self._connection.close()
        await self._map_lock.enter()
        self._map_condition.signal_all()
        self._map_lock.leave()
        await self._ended.wait()

    # -- the loop ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        """It starts without partitions (addFetcherForPartitions). Those that are added between its
        first look at what to truncate and its first at what to fetch stay where they are for a
        whole back-off: nothing is ready to be fetched, and nobody signals again. Up to 0.10 there
        is only the one look, under one lock."""
        checkpoint = self._context.kernel.checkpoint
        await checkpoint("fetcher_start")
        looks_again = self._looks_twice
        while self._running:
            self._context.kernel.cause = -1
            if self._look_at_all:
                await self._maybe_truncate()
            if looks_again:
                await checkpoint("fetcher_look")
                looks_again = False
            await self._maybe_fetch()
        self._context.emit(events.FetcherStopped, self.leader.broker, self.fetcher_id)
        self._ended.resolve(None)

    async def _send(self, request: Request) -> object:
        """Connect if need be, send, and wait for the answer (ReplicaFetcherBlockingSend)."""
        config = self._context.config
        if self._connection is None:
            await self._context.kernel.checkpoint("fetcher_connect")
            if not self._running:
                raise Disconnected("the fetcher ends")
        if self._connection is None or not self._connection.open:
            client = f"broker-{self._context.broker}-fetcher-{self.fetcher_id}"
            self._connection = await self._network.connect(
                client, self.leader.host, self.leader.port, config.replica_socket_timeout_ms
            )
        return await self._connection.send(request, config.request_timeout_ms)

    async def _maybe_fetch(self) -> None:
        await self._map_lock.enter()
        try:
            built = self._build_fetch()
            if built is None:
                await self._back_off()
        finally:
            self._map_lock.leave()
        if built is not None and self._running:
            await self._process_fetch_request(*built)

    async def _back_off(self) -> None:
        await self._map_condition.wait(self._context.config.replica_fetch_backoff_ms * 1000)

    def _build_fetch(self) -> Built | None:
        """Partitions to name in the next request, and to forget; None when none is to be fetched.
        Kafka looks at every partition each time; where nothing but offsets has moved since the last
        time, those that have are enough."""
        if not self.partitions:
            return None
        if self._look_at_all or self._session.is_full or self._quota.throttles:
            return self._build_from_all()
        moved = [self._wanted(partition, self.partitions[partition]) for partition in self._moved]
        self._moved.clear()
        return self._session.build_moved([wanted for wanted in moved if wanted is not None]), ()

    def _build_from_all(self) -> Built | None:
        """Partitions that are ready, in order; throttled ones that are out of sync are left out."""
        now_us = self._context.kernel.now
        wanted = {}
        for partition, state in self.partitions.items():
            if state.is_ready_for_fetch(now_us) and not self._should_throttle(partition, state):
                fetch = self._wanted(partition, state)
                if fetch is not None:
                    wanted[partition] = fetch
        self._look_at_all = len(wanted) < len(self.partitions)
        self._moved.clear()
        return self._session.build(wanted) if wanted else None

    def _wanted(
        self, partition: TopicPartition, state: PartitionFetchState
    ) -> FetchPartition | None:
        hosted = self._hosted(partition)
        if hosted is None or hosted.log is None:
            return None
        return FetchPartition(
            partition,
            self._epoch_sent(state),
            state.fetch_offset,
            hosted.log.log_start_offset,
            self._context.config.replica_fetch_max_bytes,
        )

    def _epoch_sent(self, state: PartitionFetchState) -> int:
        """Before 2.1 none (KIP-320)."""
        return state.current_leader_epoch if self._fenced else NO_EPOCH

    def _should_throttle(self, partition: TopicPartition, state: PartitionFetchState) -> bool:
        """shouldFollowerThrottle: one that is in sync never."""
        return (
            not state.is_replica_in_sync
            and self._quota.is_throttled(partition)
            and self._quota.is_quota_exceeded(self._context.now_ms())
        )

    async def _process_fetch_request(
        self, named: tuple[FetchPartition, ...], forgotten: tuple[TopicPartition, ...]
    ) -> None:
        response = await self._fetch_from_leader(named, forgotten)
        if response is None or not response.partitions:
            return
        await self._map_lock.enter()
        try:
            for answer in response.partitions:
                await self._handle_answer(answer, self._session.asked(answer.partition))
        finally:
            self._map_lock.leave()

    async def _fetch_from_leader(
        self, named: tuple[FetchPartition, ...], forgotten: tuple[TopicPartition, ...]
    ) -> FetchResponse | None:
        """One Fetch; a broken connection costs a back-off, and then another one for every
        partition."""
        config = self._context.config
        self._context.emit(
            events.FetchSent,
            self.leader.broker,
            tuple([Offset(p.partition, p.fetch_offset) for p in named]),
            self._session.epoch,
        )
        request = FetchRequest(
            self._context.broker,
            config.replica_fetch_wait_max_ms,
            config.replica_fetch_min_bytes,
            config.replica_fetch_response_max_bytes,
            self._session.session_id,
            self._session.epoch,
            named,
            forgotten,
            self._context.broker_epoch,
        )
        try:
            response = await self._send(request)
        except Disconnected:
            self._session.reset()
            if self._running:
                await self._delay_all()
            return None
        assert isinstance(response, FetchResponse)
        return response if self._session.handle_response(response) else None

    async def _delay_all(self) -> None:
        await self._map_lock.enter()
        try:
            await self._back_off()
            for partition in list(self.partitions):
                self._delay(partition, "DISCONNECTED")
        finally:
            self._map_lock.leave()

    def _delay(self, partition: TopicPartition, reason: str) -> None:
        """Leave a partition out for a back-off; one that is already delayed keeps its time
        (delayPartitions)."""
        state, kernel = self.partitions.get(partition), self._context.kernel
        if state is None or state.is_delayed(kernel.now):
            return
        backoff_ms = self._context.config.replica_fetch_backoff_ms
        state.delayed_until_us = kernel.now + backoff_ms * 1000
        self._look_at_all = True
        self.partitions[partition] = self.partitions.pop(partition)
        self._context.emit(
            events.PartitionDelayed, partition, self.leader.broker, backoff_ms, reason
        )

    async def _handle_answer(self, answer: FetchedPartition, asked: FetchPartition | None) -> None:
        """Use an answer only if the partition is still where it was when it was asked for."""
        state = self.partitions.get(answer.partition)
        if (
            state is None
            or asked is None
            or asked.fetch_offset != state.fetch_offset
            or not state.is_ready_for_fetch(self._context.kernel.now)
        ):
            return
        if answer.error is Errors.NONE:
            await self._process_partition_data(answer, state)
        elif answer.error is Errors.OFFSET_OUT_OF_RANGE:
            await self._handle_out_of_range(answer.partition, state)
        elif answer.error is Errors.FENCED_LEADER_EPOCH:
            self._on_fenced(answer.partition, asked.current_leader_epoch)
        else:
            self._delay(answer.partition, answer.error.name)

    async def _process_partition_data(
        self, answer: FetchedPartition, state: PartitionFetchState
    ) -> None:
        """Append, set the high watermark, and move to the end if there was anything."""
        partition, batches = answer.partition, answer.batches
        hosted = self._hosted(partition)
        if hosted is None or hosted.log is None:
            return
        if not batches:
            hosted.update_follower_high_watermark(answer.high_watermark)
            return
        try:
            await hosted.append_records_to_follower(batches)
        except UnexpectedAppendOffset as error:
            self._unexpected(partition, error)
            return
        except KafkaError:
            self._storage_error(partition)
            return
        hosted.update_follower_high_watermark(answer.high_watermark)
        if self._quota.throttles and self._quota.is_throttled(partition):
            self._quota.record(answer.size, self._context.now_ms())
        self.moved_to(partition, batches[-1].next_offset)
        state.lag = max(0, answer.high_watermark - state.fetch_offset)
        state.delayed_until_us = 0
        self.partitions[partition] = self.partitions.pop(partition)

    def moved_to(self, partition: TopicPartition, offset: int) -> None:
        """The next request asks for the records from there on."""
        self.partitions[partition].fetch_offset = offset
        self._moved[partition] = None

    def _on_fenced(self, partition: TopicPartition, asked_epoch: int) -> None:
        """The leader is ahead: the partition fails until the next LeaderAndIsr, unless that came
        meanwhile."""
        state = self.partitions.get(partition)
        if state is not None and state.current_leader_epoch == asked_epoch:
            self._mark_failed(partition)
        else:
            self._delay(partition, Errors.FENCED_LEADER_EPOCH.name)

    def _storage_error(self, partition: TopicPartition) -> None:
        """It cannot be written (KIP-461)."""
        if self._failed_leave:
            self._mark_failed(partition)
        else:
            self._delay(partition, Errors.KAFKA_STORAGE_ERROR.name)

    def _unexpected(self, partition: TopicPartition, error: KafkaError) -> None:
        """Whatever else is thrown: the partition fails (KIP-461); before, the thread ended."""
        if self._failed_leave:
            self._mark_failed(partition)
        else:
            self._running = False
            self._context.failed("ReplicaFetcherThread", error)

    def _mark_failed(self, partition: TopicPartition) -> None:
        """It leaves this thread until the next LeaderAndIsr (markPartitionFailed)."""
        self.partitions.pop(partition, None)
        self._look_at_all = True
        self._failed(partition)

    async def _handle_out_of_range(
        self, partition: TopicPartition, state: PartitionFetchState
    ) -> None:
        """Ask where the leader's log ends, and if need be where it begins
        (fetchOffsetAndTruncate)."""
        hosted = self._hosted(partition)
        assert hosted is not None
        try:
            ask = functools.partial(self._list_offset, partition, state)
            offset = await self._out_of_range.next_offset(hosted, ask)
        except (Disconnected, ZooKeeperError):
            self._delay(partition, Errors.OFFSET_OUT_OF_RANGE.name)
            return
        except KafkaError:
            self._storage_error(partition)
            return
        self.moved_to(partition, offset)
        self.partitions[partition] = self.partitions.pop(partition)

    async def _list_offset(
        self, partition: TopicPartition, state: PartitionFetchState, *, earliest: bool
    ) -> int:
        response = await self._send(
            ListOffsetsRequest(self._context.broker, partition, self._epoch_sent(state), earliest)
        )
        assert isinstance(response, ListOffsetsResponse)
        if response.error is not Errors.NONE:
            raise Disconnected(response.error.name)
        return response.offset

    # -- truncation --------------------------------------------------------------------------------

    async def _maybe_truncate(self) -> None:
        """Partitions that were added ask where their last epoch ended; those without an epoch
        truncate to the high watermark."""
        await self._map_lock.enter()
        try:
            now_us = self._context.kernel.now
            pending = {
                p: s
                for p, s in self.partitions.items()
                if s.truncating and not s.is_delayed(now_us)
            }
            queries = self._epoch_queries(pending)
            asked = {q.partition for q in queries}
            plain = [p for p in pending if p not in asked]
            for partition in plain:
                self._truncate_to_high_watermark(partition)
        finally:
            self._map_lock.leave()
        if queries:
            await self._truncate_to_epoch_end_offsets(queries)

    def _epoch_queries(
        self, pending: dict[TopicPartition, PartitionFetchState]
    ) -> list[EpochQuery]:
        queries = []
        for partition, state in pending.items():
            hosted = self._hosted(partition)
            epoch = hosted.log.epochs.latest_epoch if hosted is not None and hosted.log else None
            if epoch is not None:
                queries.append(EpochQuery(partition, self._epoch_sent(state), epoch))
        return queries

    def _truncate_to_high_watermark(self, partition: TopicPartition) -> None:
        hosted, state = self._hosted(partition), self.partitions[partition]
        if hosted is not None and hosted.log is not None:
            try:
                hosted.truncate_to(state.fetch_offset)
            except KafkaError:
                self._storage_error(partition)
                return
            state.fetch_offset = min(state.fetch_offset, hosted.log.log_end_offset)
        state.truncating = False

    async def _truncate_to_epoch_end_offsets(self, queries: list[EpochQuery]) -> None:
        answers = await self._fetch_epoch_end_offsets(queries)
        await self._map_lock.enter()
        try:
            for query, answer in zip(queries, answers, strict=True):
                state = self.partitions.get(query.partition)
                if state is not None and self._epoch_sent(state) == query.current_leader_epoch:
                    self._handle_epoch_answer(query, answer, state)
            self._group_by_topic()
        finally:
            self._map_lock.leave()

    async def _fetch_epoch_end_offsets(self, queries: list[EpochQuery]) -> list[EpochEndOffset]:
        try:
            response = await self._send(
                OffsetsForLeaderEpochRequest(self._context.broker, tuple(queries))
            )
        except Disconnected:
            return [
                EpochEndOffset(q.partition, Errors.UNKNOWN_SERVER_ERROR, -1, -1) for q in queries
            ]
        assert isinstance(response, OffsetsForLeaderEpochResponse)
        return list(response.partitions)

    def _handle_epoch_answer(
        self, query: EpochQuery, answer: EpochEndOffset, state: PartitionFetchState
    ) -> None:
        hosted = self._hosted(query.partition)
        if hosted is None or hosted.log is None:
            return
        if answer.error is Errors.FENCED_LEADER_EPOCH:
            self._on_fenced(query.partition, query.current_leader_epoch)
        elif answer.error is not Errors.NONE:
            self._delay(query.partition, answer.error.name)
        else:
            epoch = answer.leader_epoch if self._in_rounds else UNDEFINED_EPOCH
            found = offset_truncation_state(
                hosted.log, state.fetch_offset, epoch, answer.end_offset
            )
            try:
                hosted.truncate_to(found.offset)
            except KafkaError:
                self._storage_error(query.partition)
                return
            state.fetch_offset, state.truncating = found.offset, not found.done

    def _group_by_topic(self) -> None:
        """PartitionStates.set: a truncation round re-groups the order by topic."""
        topics: dict[str, list[TopicPartition]] = {}
        for partition in self.partitions:
            topics.setdefault(partition.topic, []).append(partition)
        self.partitions = {p: self.partitions[p] for group in topics.values() for p in group}
