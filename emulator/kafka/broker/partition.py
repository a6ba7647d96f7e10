"""One partition at one broker: role, ISR, log, and a leader's handling of fetches and appends.

Owns `leaderIsrUpdateLock` and everything that it guards. The rules are in `replica`, ISR changes in
`leader_isr`; this module defines the order and the locks under which they are applied. Knows no
request, no fetcher, no controller. Source: cluster/Partition.scala@2.6.3; spec §3.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.idle_fetches import IdleFetches
from emulator.kafka.broker.isr_state import CommittedIsr, IsrState, counted_isr
from emulator.kafka.broker.isr_store import IsrStore, ZkIsrStore
from emulator.kafka.broker.leader_isr import LeaderIsr
from emulator.kafka.broker.log_dirs import LogDirectory
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.partition_ports import DelayedOperations
from emulator.kafka.broker.replica import Replica, Rules, high_watermark_allowed
from emulator.kafka.model.errors import NO_ERROR, Errors, KafkaError
from emulator.kafka.model.offset_log import (
    UNDEFINED_EPOCH,
    Batch,
    EpochEntry,
    OffsetLog,
    ReadInfo,
)
from emulator.kafka.model.producer_state import BatchMetadata, BatchProducer
from emulator.kafka.model.record_batch import first_not_before
from emulator.kafka.profiles.guards.consumers import OFFSETS_BEHIND_ELECTION_HIDDEN
from emulator.kafka.profiles.guards.following import (
    EPOCH_START_RECORDED,
    FETCHES_COMPLETED_OUTSIDE_THE_LOCK,
    RANGE_BEFORE_DIVERGENCE,
    TRUNCATION_AFTER_MISSED_EPOCHS,
)
from emulator.kafka.profiles.guards.isr import CONTROLLERS_SHRINKS_COUNT, ONLY_THE_ASSIGNED_JOIN
from emulator.kafka.profiles.guards.producers import UNKNOWN_PRODUCERS_ACCEPTED
from emulator.kafka.protocol.messages import FetchedPartition, FetchPartition
from emulator.kernel.scheduler import BASE_MS
from emulator.kernel.sync import RwLock, WriteSection
from emulator.trace import events
from emulator.trace.values import EpochRun, PartitionState, TopicPartition


class Partition:
    """A hosted partition."""

    def __init__(
        self,
        context: BrokerContext,
        partition: TopicPartition,
        store: IsrStore,
        delayed: DelayedOperations,
        logs: LogManager,
        metadata_cache: MetadataCache,
    ) -> None:
        self._context, self.partition = context, partition
        self._store, self._delayed, self._logs = store, delayed, logs
        self._rules = Rules.of(context.guards, context.config.replica_lag_max_messages)
        self._fetches_outside = FETCHES_COMPLETED_OUTSIDE_THE_LOCK in context.guards
        self._range_first = RANGE_BEFORE_DIVERGENCE in context.guards
        self.lock = RwLock(context.kernel, f"leaderIsrUpdateLock {partition}")
        self.idle_fetches = IdleFetches(self, self._rules)
        self.zk_version = 0
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.leader_replica_id: int | None = None
        self.leader_log: OffsetLog | None = None
        """The log, if this broker leads (leaderLogIfLocal): an attribute, because every fetch reads
        it."""
        self.isr_state = CommittedIsr(())
        self.leader_isr = LeaderIsr(context, self, store, self._rules, metadata_cache)
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remotes: dict[int, Replica] = {}
        self.log: OffsetLog | None = None
        self.directory: LogDirectory | None = None
        self.controller_epoch = 0
        self._last_at_end: FetchedPartition | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.leader_replica_id == self._context.broker

    def _set_leader(self, leader: int | None) -> None:
        self.leader_replica_id = leader
        self.leader_log = self.log if self.is_leader else None

    def wake(self) -> None:
        """A change follows: idle fetches are read again."""
        self.idle_fetches.wake()

    def writing(self) -> WriteSection:
        """`async with` the write lock. Idle fetches wake before the wait for it, because the lock's
        current owner may read them."""
        # Lock order: replicaStateChangeLock, this lock, the monitor of isrChangeSet.
        self.idle_fetches.wake()
        self._delayed.about_to_change(self.partition)
        return self.lock.write

    # -- roles -------------------------------------------------------------------------------------

    async def make_leader(self, state: PartitionState) -> bool:
        """Become leader, or apply a new epoch as the current leader; True only for a new leader."""
        context = self._context
        async with self.writing():
            # Written to the znode with each ISR change: the epoch of the controller that sent this
            # state, not the newest that the broker knows (spec §1.6).
            self.controller_epoch = state.controller_epoch
            isr_size_before = len(self.isr) if self.is_leader else 0
            self._update_assignment_and_isr(state, state.isr)
            log = await self.create_log_if_not_exists(is_new=state.is_new)
            # An exception of the log leaves the assignment changed and the role unchanged: Kafka
            # assigns in this order too.
            self.leader_epoch_start_offset = log.log_end_offset
            self.leader_epoch = state.leader_epoch
            self.zk_version = state.zk_version
            self._check_writable()
            # The file of epochs is written with the lock held and the new ISR in place. A fetch
            # that has read another partition in its old epoch may wait here for this one, and then
            # counts in the other's new epoch: a follower that the controller has removed joins.
            await context.kernel.checkpoint("make_leader")
            if EPOCH_START_RECORDED in context.guards:
                # Recorded now and not with the first record, because followers may query it earlier
                # (KAFKA-7415).
                log.epochs.assign(state.leader_epoch, log.log_end_offset)
            # False for a leader whose epoch the controller has raised: it keeps its followers'
            # state and its high watermark.
            is_new_leader = not self.is_leader
            now_ms = context.now_ms()
            for replica in self.remotes.values():
                if self._rules.caught_up_time_reset:
                    # ISR members get a full lag time to fetch; other followers get none.
                    caught_up_ms = now_ms if replica.broker in self.isr else 0
                    replica.reset_last_caught_up_time(log.log_end_offset, now_ms, caught_up_ms)
                elif self._rules.lag_messages_max is not None:
                    # 0.8 does so for a new epoch, too, and counts the update as one by a fetch
                    # (Partition.scala@0.8.2.2 makeLeader, Replica.scala logEndOffset_=).
                    replica.forget_offsets()
                    replica.last_caught_up_time_ms = now_ms
            if is_new_leader:
                self._set_leader(context.broker)
                for replica in self.remotes.values():
                    # All log ends are -1: the high watermark cannot rise until every ISR member has
                    # fetched (spec §3.5).
                    replica.forget_offsets()
            context.emit(
                events.BecomesLeader,
                self.partition,
                self.leader_epoch,
                log.log_end_offset,
                log.high_watermark,
            )
            if CONTROLLERS_SHRINKS_COUNT in context.guards and len(state.isr) < isr_size_before:
                context.emit(events.ControllerShrinkCounted, self.partition, state.isr)
            # If the ISR is only this broker, no fetch will raise the high watermark.
            hw_incremented = self.maybe_increment_leader_hw(context.now_ms())
        # Outside the lock: a completed operation takes the locks of other partitions.
        if hw_incremented:
            await self._delayed.check_and_complete_all(self.partition)
        return is_new_leader

    async def make_follower(self, state: PartitionState) -> bool:
        """Become follower of `state.leader`; True if leader or epoch changed and the fetcher must
        be restarted."""
        async with self.writing():
            old_leader_epoch = self.leader_epoch
            self.controller_epoch = state.controller_epoch
            # A follower's ISR is always empty: only the leader knows the ISR (spec §3.1).
            self._update_assignment_and_isr(state, ())
            # May read the topic's configuration from ZooKeeper with the write lock held.
            log = await self.create_log_if_not_exists(is_new=state.is_new)
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = None
            self.zk_version = state.zk_version
            self._context.emit(
                events.BecomesFollower,
                self.partition,
                state.leader,
                state.leader_epoch,
                log.log_end_offset,
                log.high_watermark,
            )
            # The same leader with a later epoch: another broker may have led in between, and the
            # leader may have truncated records that this follower has.
            if self.leader_replica_id == state.leader and (
                self.leader_epoch == old_leader_epoch
                or TRUNCATION_AFTER_MISSED_EPOCHS not in self._context.guards
            ):
                return False
            self._set_leader(state.leader)
            return True

    def _update_assignment_and_isr(self, state: PartitionState, isr: tuple[int, ...]) -> None:
        """Update the assignment; new replicas are added before removed ones are dropped."""
        followers = [b for b in state.replicas if b != self._context.broker]
        for broker in followers:
            if broker not in self.remotes:
                replica = self.remotes[broker] = Replica(broker)
                if not self._rules.caught_up_time_reset:
                    # Before KAFKA-4485 a follower counts as caught up when its object is created.
                    replica.last_caught_up_time_ms = self._context.now_ms()
        if ONLY_THE_ASSIGNED_JOIN in self._context.guards:
            # Without a Replica object a follower's fetches are not recorded, and it cannot join the
            # ISR (KAFKA-5758).
            for broker in [b for b in self.remotes if b not in followers]:
                del self.remotes[broker]
        self.replicas, self.isr_state = state.replicas, self.leader_isr.committed(isr)
        # A leader's own write ends before the lock is released, so none can be pending here.
        if not isinstance(self._store, ZkIsrStore):
            # The controller's state ends a proposal without a response (spec §7.5).
            self._store.clear_pending(self.partition)
        self.adding_replicas, self.removing_replicas = (
            state.adding_replicas,
            state.removing_replicas,
        )

    async def create_log_if_not_exists(self, *, is_new: bool) -> OffsetLog:
        """Without the lock of its own: where only the log is made, because the leader is not known
        to be live (KAFKA-1647), an ISR write that waits for ZooKeeper does not hold up the
        controller's request."""
        if self.log is None:
            self.log, self.directory = await self._logs.get_or_create(self.partition, is_new=is_new)
        return self.log

    def _check_writable(self) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) if the log's directory has failed."""
        if self.directory is not None and self.directory.failed:
            self._logs.check(self.directory)

    async def delete(self) -> None:
        """The topic is deleted: clear all state."""
        async with self.writing():
            # A thread that waits for the lock with this object will find no leader and no log.
            self.remotes.clear()
            # The log itself is deleted by ReplicaManager, after this lock is released.
            self.replicas, self.isr_state, self.log = (), CommittedIsr(()), None
            self._set_leader(None)
            self.leader_epoch_start_offset = None

    # -- a follower's fetch ------------------------------------------------------------------------

    def record_sent_hw(self, follower: int, high_watermark: int) -> bool:
        """A fetch has arrived and its response has this high watermark: True if the follower does
        not have it yet (followerNeedsHwUpdate@2.4.1). Later responses of delayed fetches are not
        recorded.
        """
        replica = self.remotes.get(follower)
        if replica is None:
            return False
        before, replica.last_sent_high_watermark = replica.last_sent_high_watermark, high_watermark
        return high_watermark > before

    def has_newer_hw_for(self, follower: int) -> bool:
        """The high watermark is greater than the last one sent to the follower."""
        replica, log = self.remotes.get(follower), self.log
        return (
            replica is not None
            and log is not None
            and log.high_watermark > replica.last_sent_high_watermark
        )

    async def update_follower_fetch_state(
        self,
        follower: int,
        fetch_offset: int,
        log_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
    ) -> bool:
        """Record a follower's fetch; False if it has no assigned replica."""
        replica = self.remotes.get(follower)
        if replica is None:
            return False
        # An idle fetch of this follower in another session has older times to report first.
        self.idle_fetches.wake_follower(replica)
        before, start_before = replica.log_end_offset, replica.log_start_offset
        replica.update_fetch_state(
            fetch_offset, log_start_offset, fetch_time_ms, leader_end_offset, self._rules
        )
        if before != fetch_offset:
            self._context.emit(
                events.FollowerStateUpdated,
                self.partition,
                follower,
                fetch_offset,
                leader_end_offset,
                replica.last_caught_up_time_ms - BASE_MS,
            )
        # The ISR first: a replica that joins counts for the high watermark below. The write to
        # ZooKeeper may take long (Partition.scala@2.6.3 updateFollowerFetchState).
        if follower not in self.isr:
            await self.leader_isr.maybe_expand(replica)
        if before != replica.log_end_offset and self.leader_log is not None:
            if not self.lock.readable:
                await self.lock.pass_read()
            raised = self.maybe_increment_leader_hw(fetch_time_ms)
            # In 0.8 a produce with acks=2 can complete without a new high watermark: the follower's
            # log end counts.
            if raised or not self._rules.acks_are_all_or_one:
                await self._delayed.check_and_complete_all(self.partition)
        if start_before != replica.log_start_offset:
            await self._delayed.check_and_complete_delete_records(self.partition)
        return True

    # -- the ISR -----------------------------------------------------------------------------------

    @property
    def isr_state(self) -> IsrState:
        """Committed, or with a pending change."""
        return self._isr_state

    @isr_state.setter
    def isr_state(self, state: IsrState) -> None:
        """`isr` is the committed ISR; the high watermark and acks=all use `maximal_isr`. Both are
        attributes because every fetch reads them."""
        self.idle_fetches.wake()
        self._isr_state: IsrState = state
        self.isr: tuple[int, ...] = state.isr
        self.maximal_isr: tuple[int, ...] = counted_isr(state, self._context.guards)

    async def complete_all_delayed(self) -> None:
        """The high watermark has moved: check the delayed requests, outside the lock."""
        await self._delayed.check_and_complete_all(self.partition)

    def maybe_increment_leader_hw(self, now_ms: int) -> bool:
        """Raise the high watermark to the smallest log end of the leader, the ISR and the caught-up
        replicas (`replica.high_watermark_allowed`); True if it moved. Called after an append, a
        follower's fetch and an ISR change.
        """
        log = self.leader_log
        if log is None:
            return False
        max_lag_ms = self._context.config.replica_lag_time_max_ms
        # The maximal ISR: an added replica counts as soon as it is proposed, a removed one until
        # the change is committed. So no response can undo a commit (KIP-497).
        allowed = high_watermark_allowed(
            log.log_end_offset,
            self.remotes.values(),
            self.maximal_isr,
            now_ms,
            max_lag_ms,
            self._rules,
        )
        # A leader's high watermark never decreases, not even when a replica joins the ISR.
        if allowed <= log.high_watermark:
            return False
        self.idle_fetches.wake()
        log.maybe_increment_high_watermark(allowed)
        self._context.emit(events.HwAdvanced, self.partition, "leader", allowed, log.log_end_offset)
        return True

    # -- produce -----------------------------------------------------------------------------------

    async def append_records_to_leader(
        self,
        records: int,
        size: int,
        required_acks: int,
        data: bytes = b"",
        producer: BatchProducer | None = None,
    ) -> Batch | BatchMetadata:
        """Append under the read lock. With acks=all and too small an ISR it raises
        KafkaError(NOT_ENOUGH_REPLICAS) before anything is written. A duplicate of an idempotent
        producer is not appended: the result is its position in the log. Delayed requests are
        checked outside the lock. In 2.1.0 delayed fetches are checked under it, which takes the
        locks of other partitions (KAFKA-7697).
        """
        if self._fetches_outside:
            if not self.lock.readable:
                await self.lock.pass_read()
            batch = await self._append(records, size, required_acks, data, producer)
        else:
            async with self.lock.read:
                batch = await self._append(records, size, required_acks, data, producer)
                await self._delayed.check_and_complete_fetch(self.partition)
        # If the ISR is only the leader, the record is committed now. Otherwise only fetches that
        # wait for bytes can complete.
        if self.maybe_increment_leader_hw(self._context.now_ms()):
            await self._delayed.check_and_complete_all(self.partition)
        elif self._fetches_outside:
            await self._delayed.check_and_complete_fetch(self.partition)
        return batch

    async def _append(
        self,
        records: int,
        size: int,
        required_acks: int,
        data: bytes,
        producer: BatchProducer | None,
    ) -> Batch | BatchMetadata:
        """Called in a read section."""
        log = self._log_to_append_to(required_acks)
        if self._logs.is_slow() or self._context.kernel.holds is not None:
            # A slow disk holds the read lock: an ISR change waits for it. After this block the code
            # up to the next await is a read section.
            async with self.lock.read:
                # The broker may have become follower while this waited for the lock.
                log = self._log_to_append_to(required_acks)
                await self._context.kernel.checkpoint("append_log", str(self.partition))
                if self._logs.is_slow():
                    await self._logs.append_delay()
        self._check_writable()
        if producer is not None:
            # No await between this check and the append; in Kafka both are under Log's lock
            # (Log.scala@2.6.3 analyzeAndValidateProducerState).
            duplicate = log.producers.duplicate_of(producer, records)
            if duplicate is not None:
                return duplicate
            log.producers.check(
                producer, accepts_unknown=UNKNOWN_PRODUCERS_ACCEPTED in self._context.guards
            )
        self.idle_fetches.wake()
        before = len(log.batches)
        try:
            now_ms = -1 if data else self._logs.wall_ms()
            return log.append_as_leader(records, size, self.leader_epoch, data, producer, now_ms)
        finally:
            self._emit_appended("leader", log, before)

    def _log_to_append_to(self, required_acks: int) -> OffsetLog:
        """The leader's log. Raises KafkaError if this broker does not lead, or if acks=all and the
        ISR is too small."""
        if self.leader_log is None:
            raise KafkaError(Errors.NOT_LEADER_OR_FOLLOWER)
        # The committed ISR, although the completion test uses the maximal one: a proposed member
        # does not allow an append.
        if required_acks == -1 and len(self.isr) < self.min_insync_replicas:
            raise KafkaError(Errors.NOT_ENOUGH_REPLICAS)
        return self.leader_log

    def _emit_appended(self, role: str, log: OffsetLog, before: int) -> None:
        """The log had `before` batches. Also called after a failed append: the batches before the
        failed one are in the file, or all of them if only the flush failed. The next start reads
        them."""
        batches = log.batches[before:]
        if not batches:
            return
        epochs: tuple[EpochRun, ...] = ()
        size = 0
        for batch in batches:
            size += batch.size
            if batch.leader_epoch != self.leader_epoch and not epochs:
                epochs = tuple(EpochRun(b.leader_epoch, b.base_offset) for b in batches)
        self._context.emit(
            events.RecordsAppended,
            self.partition,
            role,
            batches[0].base_offset,
            log.log_end_offset,
            self.leader_epoch,
            size,
            epochs,
        )

    @property
    def min_insync_replicas(self) -> int:
        """The topic's setting, or the broker's."""
        return self._logs.min_insync_replicas(self.partition.topic)

    def check_enough_replicas_reach_offset(
        self, required_offset: int, required_acks: int = -1
    ) -> Errors | None:
        """The completion test of acks=all, decided by the high watermark alone; None: not yet."""
        # Without the lock: it does not wait while this leader writes an ISR change to ZooKeeper.
        log = self.leader_log
        if log is None:
            return Errors.NOT_LEADER_OR_FOLLOWER
        if required_acks > 0:
            # 0.8: that many ISR members, including the leader, have the record.
            followers = [self.remotes[b] for b in self.isr if b in self.remotes]
            acks = 1 + sum(replica.log_end_offset >= required_offset for replica in followers)
            return NO_ERROR if acks >= required_acks else None
        # Only the high watermark counts, not the number of replicas that have the record (spec
        # §3.6).
        if log.high_watermark < required_offset:
            return None
        # The current ISR, which may have shrunk since the append.
        if len(self.maximal_isr) < self.min_insync_replicas:
            return Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return NO_ERROR

    async def append_records_to_follower(self, batches: tuple[Batch, ...]) -> None:
        """Append fetched batches (appendRecordsToFollowerOrFutureReplica)."""
        # Without a lock: only the partition's fetcher thread appends, and it is stopped before this
        # broker leads (ReplicaManager._make_leaders).
        log = self.log
        assert log is not None
        if self._logs.is_slow():
            await self._logs.append_delay()
        self._check_writable()
        base, end = batches[0].base_offset, log.log_end_offset
        if log.log_start_offset == end and base < end < batches[-1].next_offset:
            # The leader's log starts inside a batch, which it sends whole. An empty log begins
            # again where the batch does, and gets its start back from the leader (KAFKA-6975).
            self.truncate_fully_and_start_at(base)
        before = len(log.batches)
        try:
            log.append_as_follower(batches)
        finally:
            self._emit_appended("follower", log, before)

    def update_follower_high_watermark(self, leader_hw: int) -> bool:
        """Apply the high watermark of a fetch response. True if that changed it."""
        # Set, not raised: a new leader's high watermark may be lower for a while (spec §3.5).
        log = self.log
        assert log is not None
        if not log.update_high_watermark(leader_hw):
            return False
        self._context.emit(
            events.HwAdvanced,
            self.partition,
            "follower",
            log.high_watermark,
            log.log_end_offset,
        )
        return True

    async def complete_delayed_fetches(self) -> None:
        """What a consumer may read here has changed."""
        self._delayed.about_to_change(self.partition)
        await self._delayed.check_and_complete_fetch(self.partition)

    def truncate_to(self, offset: int) -> None:
        """Remove the records that the leader does not have."""
        log = self.log
        assert log is not None
        before = log.log_end_offset
        if offset < before:
            self._check_writable()
        if log.truncate_to(offset):
            self._context.emit(events.LogTruncated, self.partition, before, log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove the whole log; the next record gets `offset`."""
        log = self.log
        assert log is not None
        before = log.log_end_offset
        self._check_writable()
        before_start = log.log_start_offset
        log.truncate_fully_and_start_at(offset)
        if offset < before:
            self._context.emit(events.LogTruncated, self.partition, before, offset)
        if log.log_start_offset != before_start:
            self._emit_log_start(log, "full truncation")

    def increment_log_start(self, offset: int, reason: str) -> None:
        """Records before `offset`, which is not above the high watermark, are not served any more
        (maybeIncrementLogStartOffset)."""
        log = self.log
        assert log is not None
        if offset > log.log_start_offset:
            self._check_writable()
            self.idle_fetches.wake()
            log.maybe_increment_log_start_offset(offset)
            self._emit_log_start(log, reason)

    def _emit_log_start(self, log: OffsetLog, reason: str) -> None:
        self._logs.on_change(self.partition, log)
        self._context.emit(
            events.LogStartMoved,
            self.partition,
            log.log_start_offset,
            log.high_watermark,
            log.log_end_offset,
            reason,
        )

    # -- reads -------------------------------------------------------------------------------------

    def leader_log_or_error(self, current_leader_epoch: int) -> OffsetLog | Errors:
        """See `local_log_or_error`."""
        return self.local_log_or_error(current_leader_epoch, leader_only=True)

    def local_log_or_error(
        self, current_leader_epoch: int, *, leader_only: bool
    ) -> OffsetLog | Errors:
        """The log here; or the error of another epoch, or of not leading (getLocalLog)."""
        # The epoch first: an outdated follower learns that it is fenced, not that it should look
        # for another leader. -1 means no epoch (before 2.1, and consumers).
        if current_leader_epoch not in (self.leader_epoch, -1):
            if current_leader_epoch < self.leader_epoch:
                return Errors.FENCED_LEADER_EPOCH
            return Errors.UNKNOWN_LEADER_EPOCH
        log = self.leader_log if leader_only else self.log
        return Errors.NOT_LEADER_OR_FOLLOWER if log is None else log

    def latest_offset(self, replica: int, log: OffsetLog) -> int | Errors:
        """The log end for a follower, the high watermark for a consumer (-1)."""
        if replica >= 0:
            return log.log_end_offset
        return Errors.OFFSET_NOT_AVAILABLE if self._hides_offsets(log) else log.high_watermark

    def offset_for_time(self, timestamp_ms: int, log: OffsetLog) -> tuple[int, int, int] | Errors:
        """(offset, timestamp, leader epoch) of the first committed record with that time or later,
        or -1 thrice (fetchOffsetForTimestamp). Only clients' batches have timestamps."""
        start = log.log_start_offset
        for batch in log.batches:
            if batch.base_offset >= log.high_watermark:
                break
            if batch.data and batch.next_offset > start:
                record = first_not_before(batch.data, batch.base_offset, timestamp_ms, start)
                if record is not None:
                    return record.offset, record.timestamp_ms, batch.leader_epoch
        return Errors.OFFSET_NOT_AVAILABLE if self._hides_offsets(log) else (-1, -1, -1)

    def _hides_offsets(self, log: OffsetLog) -> bool:
        """Whether the leader may not know yet what its predecessor has committed: it has not
        committed a record of its own epoch (KIP-207)."""
        start = self.leader_epoch_start_offset
        hides = OFFSETS_BEHIND_ELECTION_HIDDEN in self._context.guards
        return hides and start is not None and start > log.high_watermark

    def read_at_end(self, fetch: FetchPartition) -> FetchedPartition | None:
        """The response if the fetch is at the leader's LEO; None if there may be more to check.
        Called in a read section."""
        log, last_epoch = self.leader_log, fetch.last_fetched_epoch
        if (
            log is None
            or fetch.fetch_offset != log.log_end_offset
            or fetch.current_leader_epoch != self.leader_epoch
            or (last_epoch != UNDEFINED_EPOCH and last_epoch != log.epochs.latest_epoch)
        ):
            return None
        hw, start, last = log.high_watermark, log.log_start_offset, self._last_at_end
        # Followers read at the end several times before anything changes: the response is kept.
        if last is None or last.high_watermark != hw or last.log_start_offset != start:
            last = FetchedPartition(self.partition, NO_ERROR, hw, start, ())
            self._last_at_end = last
        return last

    def redirect(self, fetch: FetchPartition, preferred: int) -> FetchedPartition:
        """The response that names the replica to read from, and has no records
        (fetchOffsetSnapshot)."""
        log = self.leader_log_or_error(fetch.current_leader_epoch)
        if isinstance(log, Errors):
            return FetchedPartition(self.partition, log, -1, -1, ())
        return FetchedPartition(
            self.partition,
            NO_ERROR,
            log.high_watermark,
            log.log_start_offset,
            (),
            preferred_read_replica=preferred,
        )

    def read_records(
        self,
        fetch_offset: int,
        current_leader_epoch: int,
        max_bytes: int,
        *,
        last_fetched_epoch: int = UNDEFINED_EPOCH,
        at_least_one: bool,
        committed_only: bool,
        leader_only: bool = True,
    ) -> ReadInfo | Errors:
        """Read in a read section (the caller has passed the lock). Offsets are taken before the
        read, so that a later append does not make a follower look out of sync. A consumer reads up
        to the high watermark.
        """
        log = self.local_log_or_error(current_leader_epoch, leader_only=leader_only)
        # Not `isinstance(log, Errors)`, which is slow for an enumeration.
        if not isinstance(log, OffsetLog):
            return log
        end = log.log_end_offset
        if last_fetched_epoch != UNDEFINED_EPOCH:
            diverging_epoch = log.epochs.divergence(last_fetched_epoch, fetch_offset, end)
            if isinstance(diverging_epoch, Errors):
                return diverging_epoch
            # Before the range check: a follower that is ahead of its leader truncates at once.
            if diverging_epoch is not None and not (
                self._range_first and fetch_offset < log.log_start_offset
            ):
                return ReadInfo((), log.high_watermark, log.log_start_offset, end, diverging_epoch)
        # A fetch at the log end finds nothing, which is not an error.
        if fetch_offset > end or fetch_offset < log.log_start_offset:
            return Errors.OFFSET_OUT_OF_RANGE
        batches = log.read(fetch_offset, max_bytes, at_least_one=at_least_one)
        if committed_only:
            batches = tuple(b for b in batches if b.next_offset <= log.high_watermark)
        return ReadInfo(batches, log.high_watermark, log.log_start_offset, end)

    async def end_offset_for_epoch(
        self, current_leader_epoch: int, leader_epoch: int
    ) -> EpochEntry | Errors:
        """The end of `leader_epoch` in the leader's log (lastOffsetForLeaderEpoch)."""
        await self.lock.pass_read()
        log = self.leader_log_or_error(current_leader_epoch)
        if isinstance(log, Errors):
            return log
        return log.epochs.end_offset_for(leader_epoch, log.log_end_offset)
