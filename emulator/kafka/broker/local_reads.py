"""The local reads of one Fetch, and the update of the follower's state.

Owns the order (all partitions are read, then the follower's state is recorded), the byte limit, and
the leader's throttle. Knows no purgatory and no waiting requests. Source:
server/ReplicaManager.scala@2.6.3 readFromLocalLog, updateFollowerFetchState, shouldLeaderThrottle;
spec §4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_session import CachedPartition, FetchContext
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.pool import Pool
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.broker.replica_selector import PreferredReplicas
from emulator.kafka.model.errors import NO_ERROR, Errors, NotAssignedReplica
from emulator.kafka.model.offset_log import ReadInfo
from emulator.kafka.profiles.guards.following import (
    DIVERGING_FETCH_NOT_COUNTED,
    FETCHES_READ_UNDER_LOCK,
    HW_ANSWERS_NO_FETCH,
    UNASSIGNED_FETCH_IS_EMPTY,
)
from emulator.kafka.profiles.guards.isr import FAILED_READ_KEEPS_STATE
from emulator.kafka.protocol.messages import FetchedPartition, FetchPartition
from emulator.trace.values import TopicPartition

FetchedPartitions = tuple[FetchedPartition, ...]


class ReadResults(msgspec.Struct):
    """The results of one fetch."""

    partitions: list[tuple[FetchPartition, FetchedPartition, int]] = []
    """In the fetch's order, each with the leader's LEO before the read."""
    readable: int = 0
    """The number of readable bytes."""
    has_error: bool = False
    has_diverging_epoch: bool = False
    has_newer_hw: bool = False
    """A high watermark that the follower does not have yet; in 2.4 and 2.5 the response does not
    wait."""
    redirected: set[TopicPartition] = set()
    """Partitions that the consumer should read from another replica."""

    @property
    def answers(self) -> FetchedPartitions:
        return tuple([answer for _, answer, _ in self.partitions])


class LocalReads:
    """Reads from one broker's logs."""

    def __init__(
        self,
        context: BrokerContext,
        partitions: Pool[Partition],
        error_of_unhosted: Callable[[TopicPartition], Errors],
        quota: ReplicationQuotaManager,
        preferred: PreferredReplicas,
    ) -> None:
        self._context, self._partitions, self._quota = context, partitions, quota
        self._preferred = preferred
        self._error_of_unhosted = error_of_unhosted
        self.are_under_lock = FETCHES_READ_UNDER_LOCK in context.guards
        self._keeps_state = FAILED_READ_KEEPS_STATE in context.guards
        self._counts_diverging = DIVERGING_FETCH_NOT_COUNTED not in context.guards
        self._fails_unassigned = UNASSIGNED_FETCH_IS_EMPTY not in context.guards
        self._answers_for_hw = HW_ANSWERS_NO_FETCH not in context.guards

    def is_for_leader_only(self, follower: int, rack: str | None) -> bool:
        """Whether only the leader serves this fetch: a follower's, or that of an old consumer."""
        return follower >= 0 or rack is None or not self._preferred.followers_serve

    async def read(
        self,
        follower: int,
        rack: str | None,
        context: FetchContext,
        max_bytes: int,
        unknown: Container[TopicPartition] = (),
        *,
        was_delayed: bool = False,
    ) -> ReadResults:
        """Read every partition of the fetch that is not `unknown`, in order. `rack`: the
        consumer's, if it has one."""
        # Up to 2.0 a follower's state is updated under the lock, when its fetch arrives.
        takes_lock = self.are_under_lock or (follower >= 0 and not was_delayed)
        reads, left, at_least_one = ReadResults(), max_bytes, True
        results, find = reads.partitions, self._partitions.get
        leader_only = self.is_for_leader_only(follower, rack)
        if context.session is not None and not was_delayed:
            context.session.fetch_arrived()
        for fetch in context.in_turn(unknown):
            hosted = find(fetch.partition)
            if hosted is not None:
                if takes_lock and not hosted.lock.readable:
                    await hosted.lock.pass_read()
                if not leader_only:
                    assert rack is not None
                    preferred = self._preferred.find(hosted, fetch.fetch_offset, rack)
                    if preferred is not None:
                        answer = hosted.redirect(fetch, preferred)
                        results.append((fetch, answer, fetch.fetch_offset))
                        reads.redirected.add(fetch.partition)
                        reads.has_error = reads.has_error or answer.error is not NO_ERROR
                        continue
                # Most fetches find nothing, and skip the steps below.
                at_end = hosted.read_at_end(fetch)
                if at_end is not None:
                    results.append((fetch, at_end, fetch.fetch_offset))
                    continue
            answer, leader_leo, used = self._read_partition(
                hosted, follower, fetch, left, at_least_one=at_least_one, leader_only=leader_only
            )
            results.append((fetch, answer, leader_leo))
            if used:
                # KIP-74: only the first partition with records may exceed the limits.
                at_least_one, left = False, max(0, left - used)
                reads.readable += used
            reads.has_error = reads.has_error or answer.error is not NO_ERROR
            reads.has_diverging_epoch |= answer.diverging_epoch is not None
        return reads

    def _read_partition(
        self,
        hosted: Partition | None,
        follower: int,
        fetch: FetchPartition,
        left: int,
        *,
        at_least_one: bool,
        leader_only: bool,
    ) -> tuple[FetchedPartition, int, int]:
        """(response, leader's LEO before the read, used bytes of the limit). Called in a read
        section."""
        if hosted is None:
            error = self._error_of_unhosted(fetch.partition)
            return FetchedPartition(fetch.partition, error, -1, -1, ()), -1, 0
        limit = min(fetch.max_bytes, left)
        info = hosted.read_records(
            fetch.fetch_offset,
            fetch.current_leader_epoch,
            limit,
            last_fetched_epoch=fetch.last_fetched_epoch,
            at_least_one=at_least_one,
            committed_only=follower < 0,
            leader_only=leader_only,
        )
        # Not `isinstance(info, Errors)`, which is slow for an enumeration.
        if not isinstance(info, ReadInfo):
            return FetchedPartition(fetch.partition, info, -1, -1, ()), -1, 0
        # Throttled: the response has no records, the follower fetches again, and its state is
        # recorded as for any other fetch (shouldLeaderThrottle).
        batches = info.batches
        if batches and self.should_throttle(hosted, follower):
            batches = ()
        used = 0
        if batches:
            for batch in batches:
                used += batch.size
            if batches[-1].next_offset < info.log_end_offset:
                # Kafka reads up to the limit and splits a batch; the batch that did not fit has
                # used up the remaining limit.
                used = max(used, limit)
        answer = FetchedPartition(
            fetch.partition,
            NO_ERROR,
            info.high_watermark,
            info.log_start_offset,
            batches,
            info.diverging_epoch,
        )
        return answer, info.log_end_offset, used

    async def update_follower_fetch_state(
        self, follower: int, context: FetchContext, reads: ReadResults
    ) -> None:
        """Record the follower's state; a broker without an assigned replica gets no records. Raises
        NotAssignedReplica before KAFKA-5758."""
        now_ms = self._context.now_ms()
        if context.session is not None:
            read = (fetch.partition for fetch, _, _ in reads.partitions)
            context.session.fetch_recorded(now_ms, read)
        find = self._partitions.get
        for i, (fetch, answer, leader_leo) in enumerate(reads.partitions):
            hosted = find(fetch.partition)
            if answer.error is not NO_ERROR:
                if hosted is not None and not self._keeps_state:
                    # Before KAFKA-8400 a failed read set the follower's offsets to -1.
                    await hosted.update_follower_fetch_state(follower, -1, -1, -1, -1)
                continue
            if answer.diverging_epoch is not None and not self._counts_diverging:
                continue
            if hosted is not None:
                # 2.4 and 2.5: the first response with a new high watermark is sent at once.
                if self._answers_for_hw:
                    reads.has_newer_hw |= hosted.record_sent_hw(follower, answer.high_watermark)
                replica = hosted.remotes.get(follower)
                if replica is not None and hosted.idle_fetches.record_noop_fetch(
                    replica, fetch, now_ms, leader_leo
                ):
                    continue
            if hosted is None or not await hosted.update_follower_fetch_state(
                follower, fetch.fetch_offset, fetch.log_start_offset, now_ms, leader_leo
            ):
                if hosted is not None and self._fails_unassigned:
                    raise NotAssignedReplica(follower, fetch.partition)
                # The broker has no replica: its fetch gets a response, and nothing is recorded.
                without_records = msgspec.structs.replace(answer, batches=())
                reads.partitions[i] = fetch, without_records, leader_leo

    def idle(self, follower: int, without_records: Iterable[CachedPartition]) -> None:
        """Stop reading partitions whose next fetch by this follower would change only its time,
        until they change."""
        for cached in without_records:
            hosted = self._partitions.get(cached.partition)
            if hosted is not None and not self.must_send_hw(hosted, follower):
                hosted.idle_fetches.idle(follower, cached)

    def must_send_hw(self, hosted: Partition, follower: int) -> bool:
        """The follower does not have the latest high watermark, and the response must not wait (2.4
        and 2.5)."""
        return self._answers_for_hw and hosted.has_newer_hw_for(follower)

    # -- the throttle ------------------------------------------------------------------------------

    def should_throttle(self, hosted: Partition, follower: int) -> bool:
        """Out-of-sync throttled replicas may be left out; in-sync ones never (KAFKA-4313)."""
        return (
            self._quota.throttles
            and follower >= 0
            and follower not in hosted.isr
            and self._quota.is_throttled(hosted.partition)
            and self._quota.is_quota_exceeded(self._context.now_ms())
        )

    def record_sent(self, answers: Iterable[FetchedPartition]) -> None:
        """Count the bytes of throttled replicas that this broker sends."""
        if not self._quota.throttles:
            return
        size = sum(a.size for a in answers if self._quota.is_throttled(a.partition))
        if size:
            self._quota.record(size, self._context.now_ms())
