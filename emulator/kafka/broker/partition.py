"""One partition at one broker: role, ISR, log, and what a leader does with fetches and appends.

Owns `leaderIsrUpdateLock` and everything that it guards. The rules are in `replica`; this file says
in which order and under which lock they are applied. Knows no request, no fetcher, no controller.
Source: cluster/Partition.scala@2.6.3; spec §3.
"""

from __future__ import annotations

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_session import CachedPartition
from emulator.kafka.broker.isr_state import CommittedIsr, IsrState, counted_isr
from emulator.kafka.broker.isr_store import IsrStore, ZkIsrStore
from emulator.kafka.broker.leader_isr import LeaderIsr
from emulator.kafka.broker.log_dirs import LogDirectory
from emulator.kafka.broker.partition_ports import DelayedOperations, Logs
from emulator.kafka.broker.replica import Replica, Rules, all_at, high_watermark_allowed
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.offset_log import Batch, EpochEntry, OffsetLog, ReadInfo
from emulator.kafka.profiles.guards.following import (
    EPOCH_START_RECORDED,
    FETCHES_COMPLETED_OUTSIDE_THE_LOCK,
    TRUNCATION_AFTER_MISSED_EPOCHS,
)
from emulator.kafka.profiles.guards.isr import CONTROLLERS_SHRINKS_COUNT, ONLY_THE_ASSIGNED_JOIN
from emulator.kafka.protocol.messages import FetchedPartition, FetchPartition
from emulator.kernel.scheduler import BASE_MS
from emulator.kernel.sync import RwLock
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
        logs: Logs,
    ) -> None:
        self._context, self.partition = context, partition
        self._store, self._delayed, self._logs = store, delayed, logs
        self._rules = Rules.of(context.guards, context.config.replica_lag_max_messages)
        self._fetches_outside = FETCHES_COMPLETED_OUTSIDE_THE_LOCK in context.guards
        self.lock = RwLock(context.kernel, f"leaderIsrUpdateLock {partition}")
        self.zk_version = 0
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.leader_replica_id: int | None = None
        self.isr_state = CommittedIsr(())
        self._leader_isr = LeaderIsr(context, self, store, self._rules)
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remotes: dict[int, Replica] = {}
        self.log: OffsetLog | None = None
        self.directory: LogDirectory | None = None
        self.controller_epoch = 0
        self._resting: tuple[CachedPartition, ...] = ()
        self.in_step = False

    @property
    def is_leader(self) -> bool:
        """Whether this broker believes that it leads the partition."""
        return self.leader_replica_id == self._context.broker

    @property
    def leader_log(self) -> OffsetLog | None:
        """The log, if this broker leads (leaderLogIfLocal)."""
        return self.log if self.leader_replica_id == self._context.broker else None

    # -- fetches that tell nothing new -------------------------------------------------------------

    def let_rest(self, follower: int, fetch: CachedPartition) -> None:
        """Stop to look at a follower's fetches if all that they change is when they came: it stands
        in the ISR at the leader's LEO, and was told the high watermark."""
        log, replica = self.leader_log, self.remotes.get(follower)
        if (
            log is not None
            and replica is not None
            and fetch.tells_nothing(log, replica)
            and fetch.request.current_leader_epoch == self.leader_epoch
            and follower in self.isr
            and self.lock.readable
        ):
            fetch.rest(replica)
            if fetch not in self._resting:
                self._resting += (fetch,)

    def follower(self, broker: int) -> Replica:
        """What is known of a follower, its last fetch included."""
        self._stir()
        return self.remotes[broker]

    def _stir(self) -> None:
        """Something is about to change: fetches are looked at again."""
        resting, self._resting, self.in_step = self._resting, (), False
        for fetch in resting:
            fetch.wake()

    def go_offline(self) -> None:
        """Its log directory failed: whoever fetches it is told so with the next fetch."""
        self._stir()

    async def lock_for_writing(self) -> None:
        """The write lock; whoever rests on this partition is woken."""
        self.in_step = False
        if self._resting:
            self._stir()
        self._delayed.about_to_change(self.partition)
        await self.lock.acquire_write()

    # -- roles -------------------------------------------------------------------------------------

    async def make_leader(self, state: PartitionState) -> bool:
        """Become leader, or take over a new epoch as the leader that it already is; True iff newly
        leader."""
        await self.lock_for_writing()
        try:
            is_new_leader = await self._make_leader(state)
            hw_incremented = self.maybe_increment_leader_hw(self._context.now_ms())
        finally:
            self.lock.release_write()
        if hw_incremented:
            await self._delayed.check_and_complete_all(self.partition)
        return is_new_leader

    async def _make_leader(self, state: PartitionState) -> bool:
        self.controller_epoch = state.controller_epoch
        led_with = len(self.isr) if self.is_leader else 0
        self._update_assignment_and_isr(state, state.isr)
        log = await self._create_log_if_not_exists(state)
        self.leader_epoch_start_offset = log.log_end_offset
        self.leader_epoch = state.leader_epoch
        self.zk_version = state.zk_version
        self._check_writable()
        if EPOCH_START_RECORDED in self._context.guards:
            log.epochs.assign(state.leader_epoch, log.log_end_offset)
        is_new_leader = not self.is_leader
        now_ms = self._context.now_ms()
        for replica in self.remotes.values():
            if self._rules.caught_up_time_reset:
                caught_up_ms = now_ms if replica.broker in self.isr else 0
                replica.reset_last_caught_up_time(log.log_end_offset, now_ms, caught_up_ms)
            elif self._rules.lag_messages_max is not None:
                replica.last_caught_up_time_ms = now_ms
        if is_new_leader:
            self.leader_replica_id = self._context.broker
            for replica in self.remotes.values():
                replica.forget_offsets()
        self._context.emit(
            events.BecomesLeader,
            self.partition,
            self.leader_epoch,
            log.log_end_offset,
            log.high_watermark,
        )
        if CONTROLLERS_SHRINKS_COUNT in self._context.guards and len(state.isr) < led_with:
            self._context.emit(events.ToldShrinkCounted, self.partition, state.isr)
        return is_new_leader

    async def make_follower(self, state: PartitionState) -> bool:
        """Become follower of `state.leader`; True when leader or epoch changed, and fetchers must
        be rebuilt."""
        await self.lock_for_writing()
        try:
            old_leader_epoch = self.leader_epoch
            self.controller_epoch = state.controller_epoch
            self._update_assignment_and_isr(state, ())
            log = await self._create_log_if_not_exists(state)
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
            if self.leader_replica_id == state.leader and (
                self.leader_epoch == old_leader_epoch
                or TRUNCATION_AFTER_MISSED_EPOCHS not in self._context.guards
            ):
                return False
            self.leader_replica_id = state.leader
            return True
        finally:
            self.lock.release_write()

    def _update_assignment_and_isr(self, state: PartitionState, isr: tuple[int, ...]) -> None:
        """New replicas are added before old ones go."""
        followers = [b for b in state.replicas if b != self._context.broker]
        for broker in followers:
            if broker not in self.remotes:
                self.remotes[broker] = self._new_replica(broker)
        if ONLY_THE_ASSIGNED_JOIN in self._context.guards:
            for broker in [b for b in self.remotes if b not in followers]:
                del self.remotes[broker]
        self.replicas, self.isr_state = state.replicas, CommittedIsr(isr)
        if not isinstance(self._store, ZkIsrStore):
            self._store.clear_pending(self.partition)
        self.adding_replicas, self.removing_replicas = (
            state.adding_replicas,
            state.removing_replicas,
        )

    def _new_replica(self, broker: int) -> Replica:
        """Before KAFKA-4485 a follower counts as caught up when its object is made."""
        replica = Replica(broker)
        if not self._rules.caught_up_time_reset:
            replica.last_caught_up_time_ms = self._context.now_ms()
        return replica

    async def _create_log_if_not_exists(self, state: PartitionState) -> OffsetLog:
        if self.log is None:
            self.log, self.directory = await self._logs.get_or_create(
                self.partition, is_new=state.is_new
            )
        return self.log

    def _check_writable(self) -> None:
        """What follows writes to the log's directory."""
        if self.directory is not None and self.directory.failed:
            self._logs.check(self.directory)

    async def create_log_if_not_exists(self, *, is_new: bool) -> None:
        """Only the log: the leader is not known to be alive (KAFKA-1647)."""
        await self.lock_for_writing()
        try:
            if self.log is None:
                self.log, self.directory = await self._logs.get_or_create(
                    self.partition, is_new=is_new
                )
        finally:
            self.lock.release_write()

    async def delete(self) -> None:
        """The topic goes: nothing of the partition is left (delete)."""
        await self.lock_for_writing()
        try:
            self.remotes.clear()
            self.replicas, self.isr_state, self.log = (), CommittedIsr(()), None
            self.leader_replica_id = self.leader_epoch_start_offset = None
        finally:
            self.lock.release_write()

    # -- a follower's fetch ------------------------------------------------------------------------

    def stands(self, follower: int, fetch: FetchPartition, now_ms: int, leader_leo: int) -> bool:
        """Whether a fetch moves nothing but times, by a member of the ISR from where it was; and
        they are taken note of."""
        replica, offset = self.remotes.get(follower), fetch.fetch_offset
        if replica is None or replica.log_end_offset != offset or follower not in self.isr:
            return False
        if self._resting and any(rest.replica is replica for rest in self._resting):
            return False
        replica.update_fetch_state(offset, fetch.log_start_offset, now_ms, leader_leo, self._rules)
        return True

    def is_sent_newer_hw(self, follower: int, high_watermark: int) -> bool:
        """A fetch that has arrived found this one: whether the follower was not sent it before
        (followerNeedsHwUpdate@2.4.1). What a parked fetch is answered later is not taken note
        of."""
        replica = self.remotes.get(follower)
        if replica is None:
            return False
        before, replica.last_sent_high_watermark = replica.last_sent_high_watermark, high_watermark
        return high_watermark > before

    def has_newer_hw_for(self, follower: int) -> bool:
        """Whether the high watermark has passed what a follower's last fetch found."""
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
        """Take note of where a follower is; False when it is none of the assigned replicas."""
        replica = self.remotes.get(follower)
        if replica is None:
            return False
        for fetch in self._resting:
            if fetch.replica is replica:
                fetch.wake()
        before, self.in_step = replica.log_end_offset, False
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
        if follower not in self.isr:
            await self._leader_isr.maybe_expand(replica)
        if before != replica.log_end_offset and self.leader_log is not None:
            await self.lock.pass_read()
            raised = self.maybe_increment_leader_hw(fetch_time_ms)
            if raised or not self._rules.acks_are_all_or_one:
                await self._delayed.check_and_complete_all(self.partition)
        return True

    # -- the ISR -----------------------------------------------------------------------------------

    @property
    def isr_state(self) -> IsrState:
        """Committed, or with a change on its way."""
        return self._isr_state

    @isr_state.setter
    def isr_state(self, state: IsrState) -> None:
        """`isr` is the committed one, `maximal_isr` what the high watermark and acks=all wait
        for; read with each fetch."""
        self._isr_state, self.in_step = state, False
        self.isr: tuple[int, ...] = state.isr
        self.maximal_isr: tuple[int, ...] = counted_isr(state, self._context.guards)

    def has_all_in_step(self) -> bool:
        """Whether nobody can be out of sync, and the lock is free: a look would find nothing until
        something changes (`in_step`). Where a member can leave that has all records, it takes the
        look."""
        log, me, rules = self.log, self._context.broker, self._rules
        self.in_step = self.lock.readable and (
            log is None
            or self.leader_replica_id != me
            or (rules.stay_at_log_end and all_at(log.log_end_offset, self.isr, me, self.remotes))
        )
        return self.in_step

    async def maybe_shrink_isr(self) -> None:
        """One look of isr-expiration."""
        await self._leader_isr.maybe_shrink()

    def stir_for_time(self) -> None:
        """How long ago followers fetched is about to decide."""
        if self._resting and not self._rules.stay_at_log_end:
            self._stir()

    async def complete_all_delayed(self) -> None:
        """The high watermark moved: parked requests are looked at, outside the lock."""
        await self._delayed.check_and_complete_all(self.partition)

    def maybe_increment_leader_hw(self, now_ms: int) -> bool:
        """Raise the high watermark as far as the rule allows; True when it moved."""
        log = self.leader_log
        if log is None:
            return False
        max_lag_ms = self._context.config.replica_lag_time_max_ms
        allowed = high_watermark_allowed(
            log.log_end_offset,
            self.remotes.values(),
            self.maximal_isr,
            now_ms,
            max_lag_ms,
            self._rules,
        )
        if allowed <= log.high_watermark:
            return False
        if self._resting:
            self._stir()
        log.maybe_increment_high_watermark(allowed)
        self._context.emit(events.HwAdvanced, self.partition, "leader", allowed, log.log_end_offset)
        return True

    # -- produce -----------------------------------------------------------------------------------

    async def append_records_to_leader(
        self, records: int, size: int, required_acks: int, data: bytes = b""
    ) -> Batch:
        """Append under the read lock; KafkaError(NOT_ENOUGH_REPLICAS) before anything is written
        when acks=all and the ISR is too small. Parked requests are looked at outside the lock; in
        2.1.0 parked fetches are inside it, and with them the locks of others (KAFKA-7697)."""
        if self._fetches_outside:
            await self.lock.pass_read()
            batch = await self._append(records, size, required_acks, data)
        else:
            await self.lock.acquire_read()
            try:
                batch = await self._append(records, size, required_acks, data)
                await self._delayed.check_and_complete_fetch(self.partition)
            finally:
                self.lock.release_read()
        if self.maybe_increment_leader_hw(self._context.now_ms()):
            await self._delayed.check_and_complete_all(self.partition)
        elif self._fetches_outside:
            await self._delayed.check_and_complete_fetch(self.partition)
        return batch

    async def _append(self, records: int, size: int, required_acks: int, data: bytes) -> Batch:
        """In a read section."""
        log = self._log_to_append_to(required_acks)
        if self._logs.slow or self._context.kernel.holds is not None:
            await self._wait_for_disk()
        self._check_writable()
        self.in_step = False
        if self._resting:
            self._stir()
        batch = log.append_as_leader(records, size, self.leader_epoch, data)
        self._appended("leader", (batch,), log)
        return batch

    async def _wait_for_disk(self) -> None:
        """The read lock is held meanwhile; and what follows is a read section, to its next
        await."""
        await self.lock.acquire_read()
        try:
            await self._context.kernel.checkpoint("append_log", str(self.partition))
            if self._logs.slow:
                await self._logs.append_delay()
        finally:
            self.lock.release_read()

    def _log_to_append_to(self, required_acks: int) -> OffsetLog:
        log = self.leader_log
        if log is None:
            raise KafkaError(Errors.NOT_LEADER_OR_FOLLOWER)
        if required_acks == -1 and len(self.isr) < self.min_insync_replicas:
            raise KafkaError(Errors.NOT_ENOUGH_REPLICAS)
        return log

    def _appended(self, role: str, batches: tuple[Batch, ...], log: OffsetLog) -> None:
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
        """The topic's setting, else the broker's."""
        return self._logs.min_insync_replicas(self.partition.topic)

    async def check_enough_replicas_reach_offset(
        self, required_offset: int, required_acks: int = -1
    ) -> Errors | None:
        """The completion test of acks=all: decided by the high watermark alone; None: not yet."""
        await self.lock.pass_read()
        log = self.leader_log
        if log is None:
            return Errors.NOT_LEADER_OR_FOLLOWER
        if required_acks > 0:
            enough = self._members_at(required_offset) >= required_acks
            return Errors.NONE if enough else None
        if log.high_watermark < required_offset:
            return None
        if len(self.maximal_isr) < self.min_insync_replicas:
            return Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return Errors.NONE

    def _members_at(self, offset: int) -> int:
        """How many of the ISR have what is before `offset`, the leader among them."""
        known = [self.remotes[b] for b in self.isr if b in self.remotes]
        return 1 + sum(replica.log_end_offset >= offset for replica in known)

    async def append_records_to_follower(self, batches: tuple[Batch, ...]) -> None:
        """What a fetcher brought (appendRecordsToFollowerOrFutureReplica)."""
        log = self.log
        assert log is not None
        if self._logs.slow:
            await self._logs.append_delay()
        self._check_writable()
        log.append_as_follower(batches)
        self._appended("follower", batches, log)

    def update_follower_high_watermark(self, leader_hw: int) -> None:
        """The high watermark that came with a fetch answer."""
        log = self.log
        assert log is not None
        if log.update_high_watermark(leader_hw):
            self._context.emit(
                events.HwAdvanced,
                self.partition,
                "follower",
                log.high_watermark,
                log.log_end_offset,
            )

    def truncate_to(self, offset: int) -> None:
        """Remove what the leader does not have."""
        log = self.log
        assert log is not None
        before = log.log_end_offset
        if offset < before:
            self._check_writable()
        if log.truncate_to(offset):
            self._context.emit(events.LogTruncated, self.partition, before, log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop the whole log; the next record is that of `offset`."""
        log = self.log
        assert log is not None
        before = log.log_end_offset
        log.truncate_fully_and_start_at(offset)
        if offset < before:
            self._context.emit(events.LogTruncated, self.partition, before, offset)

    # -- reads -------------------------------------------------------------------------------------

    def check_current_leader_epoch(self, current_leader_epoch: int) -> Errors:
        """Fence a request by the leader epoch that it carries; -1 carries none (spec §11.4)."""
        if current_leader_epoch == -1 or current_leader_epoch == self.leader_epoch:
            return Errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        return Errors.UNKNOWN_LEADER_EPOCH

    def leader_log_or_error(self, current_leader_epoch: int) -> OffsetLog | Errors:
        """The leader's log; or the error of an epoch that is not mine, or of not leading
        (getLocalLog)."""
        if current_leader_epoch not in (self.leader_epoch, -1):
            return self.check_current_leader_epoch(current_leader_epoch)
        log = self.log if self.leader_replica_id == self._context.broker else None
        return Errors.NOT_LEADER_OR_FOLLOWER if log is None else log

    def latest_offset(self, replica: int, log: OffsetLog) -> int | Errors:
        """Of the log for a follower, committed for a consumer (-1): a leader that has not committed
        anything of its own epoch does not know it yet (KIP-207, fetchOffsetForTimestamp)."""
        if replica >= 0:
            return log.log_end_offset
        start = self.leader_epoch_start_offset
        if start is not None and start > log.high_watermark:
            return Errors.OFFSET_NOT_AVAILABLE
        return log.high_watermark

    def read_at_end(self, wanted: FetchPartition) -> FetchedPartition | None:
        """The answer where there is nothing to read: the fetch is from the leader's LEO; None where
        there may be more to it. For whoever has passed the lock."""
        log = self.log
        if log is None or wanted.fetch_offset != log.log_end_offset:
            return None
        if wanted.current_leader_epoch != self.leader_epoch or not self.is_leader:
            return None
        hw, start = log.high_watermark, log.log_start_offset
        return FetchedPartition(self.partition, Errors.NONE, hw, start, ())

    def read_records(
        self,
        fetch_offset: int,
        current_leader_epoch: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        committed_only: bool,
    ) -> ReadInfo | Errors:
        """Read in a read section (the caller has passed the lock); offsets are captured before the
        read, so that an append behind it does not keep a follower from being in sync. A consumer
        reads up to the high watermark."""
        log = self.leader_log_or_error(current_leader_epoch)
        if isinstance(log, Errors):
            return log
        if fetch_offset > log.log_end_offset or fetch_offset < log.log_start_offset:
            return Errors.OFFSET_OUT_OF_RANGE
        if fetch_offset == log.log_end_offset:
            batches: tuple[Batch, ...] = ()
        else:
            batches = log.read(fetch_offset, max_bytes, at_least_one=at_least_one)
        if committed_only:
            batches = tuple(b for b in batches if b.next_offset <= log.high_watermark)
        return ReadInfo(batches, log.high_watermark, log.log_start_offset, log.log_end_offset)

    async def end_offset_for_epoch(
        self, current_leader_epoch: int, leader_epoch: int
    ) -> EpochEntry | Errors:
        """Where `leader_epoch` ended in the leader's log (lastOffsetForLeaderEpoch)."""
        await self.lock.pass_read()
        log = self.leader_log_or_error(current_leader_epoch)
        if isinstance(log, Errors):
            return log
        return log.epochs.end_offset_for(leader_epoch, log.log_end_offset)
