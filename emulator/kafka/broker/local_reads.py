"""Reads of one Fetch from the local logs, and what leaders learn of the follower that asks.

Owns the order (all partitions are read first, then the follower's state is recorded), the limit in
bytes, and the leaders' throttle. Knows no purgatory and no answer that waits. Source:
server/ReplicaManager.scala@2.6.3 readFromLocalLog, updateFollowerFetchState, shouldLeaderThrottle;
spec §4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.fetch_session import CachedPartition, FetchContext
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.pool import Pool
from emulator.kafka.broker.quota import ReplicationQuotaManager
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.guards.following import (
    DIVERGING_FETCH_NOT_COUNTED,
    HW_ANSWERS_NO_FETCH,
)
from emulator.kafka.profiles.guards.isr import FAILED_READ_KEEPS_STATE
from emulator.kafka.protocol.messages import FetchedPartition, FetchPartition
from emulator.trace.values import TopicPartition

FetchedPartitions = tuple[FetchedPartition, ...]


@dataclass(slots=True)
class ReadResults:
    """What the partitions of one fetch had, in its order: the leaders' LEOs are those before the
    read."""

    fetches: list[FetchPartition] = field(default_factory=list)
    answers: list[FetchedPartition] = field(default_factory=list)
    leader_leos: list[int] = field(default_factory=list)
    readable: int = 0
    """Bytes that there are to read."""
    has_error: bool = False
    has_diverging_epoch: bool = False
    has_newer_hw: bool = False
    """A high watermark that the follower has not been sent, and does not wait for (2.4, 2.5)."""

    def add(self, fetch: FetchPartition, answer: FetchedPartition, leader_leo: int) -> None:
        self.fetches.append(fetch)
        self.answers.append(answer)
        self.leader_leos.append(leader_leo)


class LocalReads:
    """All that one broker reads for others."""

    def __init__(
        self,
        context: BrokerContext,
        partitions: Pool[Partition],
        error_of_unhosted: Callable[[TopicPartition], Errors],
        quota: ReplicationQuotaManager,
    ) -> None:
        self._context, self._partitions, self._quota = context, partitions, quota
        self._error_of_unhosted = error_of_unhosted
        self._keeps_state = FAILED_READ_KEEPS_STATE in context.guards
        self._counts_diverging = DIVERGING_FETCH_NOT_COUNTED not in context.guards
        self._answers_for_hw = HW_ANSWERS_NO_FETCH not in context.guards

    async def read(self, follower: int, context: FetchContext, max_bytes: int) -> ReadResults:
        """Every partition of the fetch, in turn."""
        reads, left, at_least_one = ReadResults(), max_bytes, True
        for fetch in context.in_turn():
            hosted = self._partitions.get(fetch.partition)
            if hosted is not None:
                if not hosted.lock.readable:
                    await hosted.lock.pass_read()
                # Most fetches find nothing; they are answered without any of what follows.
                at_end = hosted.read_at_end(fetch)
                if at_end is not None:
                    reads.add(fetch, at_end, fetch.fetch_offset)
                    continue
            answer, leader_leo, used = self._read_partition(
                hosted, follower, fetch, left, at_least_one=at_least_one
            )
            reads.add(fetch, answer, leader_leo)
            if used:
                # KIP-74: only the first partition that has records may exceed the limits.
                at_least_one, left = False, max(0, left - used)
                reads.readable += used
            reads.has_error = reads.has_error or answer.error is not Errors.NONE
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
    ) -> tuple[FetchedPartition, int, int]:
        """(answer, leader's LEO before the read, bytes of the limit used). In a read section."""
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
        )
        if isinstance(info, Errors):
            return FetchedPartition(fetch.partition, info, -1, -1, ()), -1, 0
        # Left out of the answer, as if there were nothing: the follower asks again, and its state
        # is recorded as that of any other fetch (shouldLeaderThrottle).
        batches = info.batches
        if batches and self.should_throttle(hosted, follower):
            batches = ()
        used = 0
        if batches:
            for batch in batches:
                used += batch.size
            if batches[-1].next_offset < info.log_end_offset:
                # Kafka reads up to the limit and cuts a batch in two; the batch that did not fit
                # has used up what was left.
                used = max(used, limit)
        answer = FetchedPartition(
            fetch.partition,
            Errors.NONE,
            info.high_watermark,
            info.log_start_offset,
            batches,
            info.diverging_epoch,
        )
        return answer, info.log_end_offset, used

    async def update_follower_fetch_state(
        self, follower: int, context: FetchContext, reads: ReadResults
    ) -> None:
        """Record where the follower is; one that is none of the assigned replicas gets no records
        (KAFKA-5758)."""
        now_ms, answers = self._context.now_ms(), reads.answers
        if context.session is not None:
            # For all idle fetches of the session at once.
            context.session.fetched_ms = now_ms
        for i, fetch in enumerate(reads.fetches):
            answer, hosted = answers[i], self._partitions.get(fetch.partition)
            if answer.error is not Errors.NONE:
                if hosted is not None and not self._keeps_state:
                    # Before KAFKA-8400 a failed read set the follower's offsets to -1.
                    await hosted.update_follower_fetch_state(follower, -1, -1, -1, -1)
                continue
            if answer.diverging_epoch is not None and not self._counts_diverging:
                continue
            # 2.4 and 2.5: the first answer that carries this high watermark goes out at once.
            if self._answers_for_hw and hosted is not None:
                reads.has_newer_hw |= hosted.record_sent_hw(follower, answer.high_watermark)
            leader_leo = reads.leader_leos[i]
            if hosted is not None and hosted.idle_fetches.is_noop_fetch(follower, fetch):
                hosted.idle_fetches.record_fetch_time(follower, fetch, now_ms, leader_leo)
                continue
            if hosted is None or not await hosted.update_follower_fetch_state(
                follower, fetch.fetch_offset, fetch.log_start_offset, now_ms, leader_leo
            ):
                # A broker that is none of the replicas: its fetch is answered, and nothing
                # recorded.
                answers[i] = msgspec.structs.replace(answer, batches=())

    def idle(self, follower: int, without_records: Iterable[CachedPartition]) -> None:
        """Stop reading partitions of which a follower's next fetch would change nothing but its
        time, until they change."""
        for cached in without_records:
            hosted = self._partitions.get(cached.partition)
            if hosted is not None and not self.must_send_hw(hosted, follower):
                hosted.idle_fetches.idle(follower, cached)

    def must_send_hw(self, hosted: Partition, follower: int) -> bool:
        """The high watermark has moved, and the follower does not wait for that (2.4 and 2.5)."""
        return self._answers_for_hw and hosted.has_newer_hw_for(follower)

    # -- the throttle ------------------------------------------------------------------------------

    def should_throttle(self, hosted: Partition, follower: int) -> bool:
        """Throttled replicas that are out of sync may be left out; those in sync never
        (KAFKA-4313)."""
        return (
            self._quota.throttles
            and follower >= 0
            and follower not in hosted.isr
            and self._quota.is_throttled(hosted.partition)
            and self._quota.is_quota_exceeded(self._context.now_ms())
        )

    def record_sent(self, answers: Iterable[FetchedPartition]) -> None:
        """Bytes of throttled replicas that leave this broker."""
        if not self._quota.throttles:
            return
        size = sum(a.size for a in answers if self._quota.is_throttled(a.partition))
        if size:
            self._quota.record(size, self._context.now_ms())
