"""Requests in purgatories: acks=all produces, and fetches that found too few bytes.

Each decides when it is complete and creates its response. Sources:
server/DelayedProduce.scala@2.6.3, server/DelayedFetch.scala@2.6.3; spec §4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable

import msgspec

from emulator.kafka.broker.fetch_session import FetchContext
from emulator.kafka.broker.local_reads import FetchedPartitions, LocalReads
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.purgatory import DelayedOperation
from emulator.kafka.model.errors import Errors
from emulator.kafka.model.offset_log import UNDEFINED_EPOCH, OffsetLog
from emulator.kafka.protocol.messages import FetchRequest, ProducedPartition, ProduceRequest
from emulator.trace.values import TopicPartition

PartitionLookup = Callable[[TopicPartition], Partition | None]


class ProduceStatus(msgspec.Struct):
    """One partition of a produce request; `required_offset` is the last appended offset + 1."""

    error: Errors
    required_offset: int = -1
    base_offset: int = -1
    acks_pending: bool = False


class DelayedProduce(DelayedOperation):
    """acks=all: waits until the high watermark of every partition has reached the appended records.
    In 0.8, acks above 1 wait for that number of ISR members."""

    def __init__(
        self,
        request: ProduceRequest,
        statuses: dict[TopicPartition, ProduceStatus],
        find: PartitionLookup,
        error_of_unhosted: Callable[[TopicPartition], Errors],
        respond: Callable[[tuple[ProducedPartition, ...]], None],
    ) -> None:
        super().__init__(request.timeout_ms)
        self._acks = request.acks
        self._statuses, self._find, self._respond = statuses, find, respond
        self._error_of_unhosted = error_of_unhosted
        for status in statuses.values():
            status.acks_pending = status.error is Errors.NONE
            if status.acks_pending:
                # The result if the request times out.
                status.error = Errors.REQUEST_TIMED_OUT

    async def try_complete(self) -> bool:
        for partition, status in self._statuses.items():
            # A decision is final: a later ISR shrink does not change it.
            if status.acks_pending:
                hosted = self._find(partition)
                if hosted is None:
                    error: Errors | None = self._error_of_unhosted(partition)
                else:
                    error = hosted.check_enough_replicas_reach_offset(
                        status.required_offset, self._acks
                    )
                if error is not None:
                    status.acks_pending, status.error = False, error
        if any(status.acks_pending for status in self._statuses.values()):
            return False
        return await self.force_complete()

    async def on_complete(self) -> None:
        self._respond(
            tuple(
                ProducedPartition(p, s.error, s.base_offset if s.error is Errors.NONE else -1)
                for p, s in self._statuses.items()
            )
        )


class DelayedFetch(DelayedOperation):
    """Waits for `min_bytes` (up to the leader's LEO, not the high watermark), for an error, or for
    the timeout; in 2.4 and 2.5 also for a new high watermark. Kafka checks every partition each
    time; here a partition without new records is skipped until it is touched.
    """

    def __init__(
        self,
        request: FetchRequest,
        context: FetchContext,
        max_bytes: int,
        reads: LocalReads,
        find: PartitionLookup,
        respond: Callable[[FetchedPartitions], None],
        redirected: Collection[TopicPartition] = (),
        unknown: Collection[TopicPartition] = (),
    ) -> None:
        """`redirected`: partitions that the consumer should read elsewhere; they complete nothing
        (LogOffsetMetadata.UnknownOffsetMetadata). `unknown`: those that are refused, not read."""
        super().__init__(request.max_wait_ms)
        self._rack, self._unknown = request.rack_id, unknown
        self._passed_over = {*redirected, *unknown}
        self._leader_only = reads.is_for_leader_only(request.replica_id, request.rack_id)
        self._min_bytes, self._max_bytes = request.min_bytes, max_bytes
        self._follower, self._context, self._reads = request.replica_id, context, reads
        self._find, self._respond = find, respond
        self._at_end: set[TopicPartition] = set(self._passed_over)
        """Partitions at their end that were not touched since, and those that complete nothing."""

    def touched(self, key: Hashable) -> None:
        if key not in self._passed_over:
            self._at_end.discard(key)

    async def try_complete(self) -> bool:
        accumulated, committed_only = 0, self._follower < 0
        for fetch in self._context.in_turn(self._at_end):
            hosted = self._find(fetch.partition)
            # Deleted, offline or led by another broker: respond with that error at once.
            if hosted is None:
                return await self.force_complete()
            if self._reads.are_under_lock and not hosted.lock.readable:
                await hosted.lock.pass_read()
            log = hosted.local_log_or_error(
                fetch.current_leader_epoch, leader_only=self._leader_only
            )
            # Not `isinstance(log, Errors)`, which is slow for an enumeration.
            if not isinstance(log, OffsetLog):
                return await self.force_complete()
            end = log.high_watermark if committed_only else log.log_end_offset
            if end < fetch.fetch_offset:
                # A consumer is ahead of the high watermark here: it waits for it.
                if committed_only and fetch.fetch_offset <= log.log_end_offset:
                    continue
                # The log was truncated below the fetch offset: the response is OFFSET_OUT_OF_RANGE.
                return await self.force_complete()
            # Truncated and appended to again: the response says where the logs diverge.
            if fetch.last_fetched_epoch != UNDEFINED_EPOCH and log.epochs.divergence(
                fetch.last_fetched_epoch, fetch.fetch_offset, log.log_end_offset
            ):
                return await self.force_complete()
            if self._reads.must_send_hw(hosted, self._follower):
                return await self.force_complete()
            if end == fetch.fetch_offset:
                self._at_end.add(fetch.partition)
            elif not self._reads.should_throttle(hosted, self._follower):
                # Count no more than requested; the records are read when the response is made.
                limit = min(fetch.max_bytes, self._min_bytes - accumulated)
                accumulated += log.bytes_from(fetch.fetch_offset, limit)
                if accumulated >= self._min_bytes:
                    return await self.force_complete()
        return False

    async def on_complete(self) -> None:
        """Read again for the response; this does not update the follower's state."""
        # The follower's state was updated when the fetch arrived; nothing newer is known.
        if self._context.session is not None:
            self._context.session.fetch_completed()
        reads = await self._reads.read(
            self._follower,
            self._rack,
            self._context,
            self._max_bytes,
            self._unknown,
            was_delayed=True,
        )
        self._respond(reads.answers)
