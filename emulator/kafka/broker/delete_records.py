"""DeleteRecords: the leader moves its log start and waits until its followers have done the same.

Owns the purgatory and the low watermark of a partition. Knows neither segments nor retention.
Sources: server/ReplicaManager.scala deleteRecords, server/DelayedDeleteRecords.scala,
cluster/Partition.scala deleteRecordsOnLeader, lowWatermarkIfLeader@2.6.3; KIP-107.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.metadata_cache import MetadataCache
from emulator.kafka.broker.partition import Partition
from emulator.kafka.broker.pool import Pool
from emulator.kafka.broker.purgatory import DelayedOperation, Purgatory
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.model.topic_names import INTERNAL_TOPICS
from emulator.kafka.protocol.messages import (
    DeletedRecords,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from emulator.trace.values import TopicPartition

HIGH_WATERMARK = -1
"""Instead of an offset: delete everything that is committed."""
NO_LOW_WATERMARK = -1

Respond = Callable[[DeleteRecordsResponse], None]
ErrorOfUnhosted = Callable[[TopicPartition], Errors]


@dataclass(slots=True)
class DeleteRecordsStatus:
    """One partition of a request."""

    error: Errors
    required_offset: int = -1
    low_watermark: int = NO_LOW_WATERMARK
    acks_pending: bool = False


class RecordDeletion:
    """Handles the DeleteRecords requests of one broker."""

    def __init__(
        self,
        context: BrokerContext,
        partitions: Pool[Partition],
        logs: LogManager,
        metadata_cache: MetadataCache,
        error_of_unhosted: ErrorOfUnhosted,
    ) -> None:
        self._context, self._partitions, self._logs = context, partitions, logs
        self._metadata_cache, self._error_of_unhosted = metadata_cache, error_of_unhosted
        self._purgatory: Purgatory | None = None
        """Kafka creates it at the start; before the first request that makes no difference."""

    async def delete_records(self, request: DeleteRecordsRequest, respond: Respond) -> None:
        """Deleted records stay deleted, even if the timeout passes before all replicas have deleted
        them."""
        statuses = {p: await self._delete_on_leader(p, offset) for p, offset in request.offsets}
        for status in statuses.values():
            if status.error is Errors.NONE:
                # The result if the timeout passes first.
                status.acks_pending = status.low_watermark < status.required_offset
                if status.acks_pending:
                    status.error = Errors.REQUEST_TIMED_OUT
        if not any(status.acks_pending for status in statuses.values()):
            respond(response_of(statuses))
            return
        if self._purgatory is None:
            self._purgatory = Purgatory(self._context, "DeleteRecords")
        await self._purgatory.try_complete_else_watch(
            DelayedDeleteRecords(request.timeout_ms, statuses, self.low_watermark, respond),
            list(statuses),
        )

    async def check_and_complete(self, partition: TopicPartition) -> None:
        """Called when a follower's log start has moved, or the broker's role has changed."""
        if self._purgatory is not None:
            await self._purgatory.check_and_complete(partition)

    def is_watched(self, partition: TopicPartition) -> bool:
        """Whether a request may still wait for this partition."""
        return self._purgatory is not None and self._purgatory.is_watched(partition)

    async def _delete_on_leader(
        self, partition: TopicPartition, offset: int
    ) -> DeleteRecordsStatus:
        if not self._metadata_cache.contains(partition):
            return DeleteRecordsStatus(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.topic in INTERNAL_TOPICS:
            return DeleteRecordsStatus(Errors.INVALID_TOPIC_EXCEPTION)
        hosted = self._partitions.get(partition)
        if hosted is None:
            return DeleteRecordsStatus(self._error_of_unhosted(partition))
        # In a read section, so that the role cannot change before the log start moves.
        await hosted.lock.pass_read()
        log = hosted.leader_log
        if log is None:
            return DeleteRecordsStatus(Errors.NOT_LEADER_OR_FOLLOWER)
        if not self._logs.is_deleting(partition.topic):
            return DeleteRecordsStatus(Errors.POLICY_VIOLATION)
        required = log.high_watermark if offset == HIGH_WATERMARK else offset
        # Only what is committed: a follower that lacks a record could not start behind it.
        if not 0 <= required <= log.high_watermark:
            return DeleteRecordsStatus(Errors.OFFSET_OUT_OF_RANGE)
        try:
            hosted.increment_log_start(required, "client record deletion")
        except KafkaError as failed:
            return DeleteRecordsStatus(failed.error)
        return DeleteRecordsStatus(Errors.NONE, required, self._low_watermark_of(hosted, log))

    def low_watermark(self, partition: TopicPartition) -> int | Errors:
        """The lowest log start of all live replicas."""
        hosted = self._partitions.get(partition)
        if hosted is None:
            return self._error_of_unhosted(partition)
        log = hosted.leader_log
        return Errors.NOT_LEADER_OR_FOLLOWER if log is None else self._low_watermark_of(hosted, log)

    def _low_watermark_of(self, hosted: Partition, log: OffsetLog) -> int:
        # A dead replica takes over the leader's log start when it returns.
        is_alive = self._metadata_cache.alive_broker
        starts = (r.log_start_offset for r in hosted.remotes.values() if is_alive(r.broker))
        return min([log.log_start_offset, *starts])


class DelayedDeleteRecords(DelayedOperation):
    """Waits until every partition's low watermark has reached its offset, or for the timeout."""

    def __init__(
        self,
        timeout_ms: int,
        statuses: dict[TopicPartition, DeleteRecordsStatus],
        low_watermark: Callable[[TopicPartition], int | Errors],
        respond: Respond,
    ) -> None:
        super().__init__(timeout_ms)
        self._statuses, self._low_watermark, self._respond = statuses, low_watermark, respond

    async def try_complete(self) -> bool:
        for partition, status in self._statuses.items():
            if not status.acks_pending:
                continue
            low_watermark = self._low_watermark(partition)
            # First: errors are numbers too.
            if isinstance(low_watermark, Errors):
                status.acks_pending, status.error = False, low_watermark
                status.low_watermark = NO_LOW_WATERMARK
            elif low_watermark >= status.required_offset:
                status.acks_pending, status.error = False, Errors.NONE
                status.low_watermark = low_watermark
        if any(status.acks_pending for status in self._statuses.values()):
            return False
        return await self.force_complete()

    async def on_complete(self) -> None:
        self._respond(response_of(self._statuses))


def response_of(statuses: dict[TopicPartition, DeleteRecordsStatus]) -> DeleteRecordsResponse:
    """A partition that timed out also has its current low watermark."""
    return DeleteRecordsResponse(
        tuple(DeletedRecords(p, s.error, s.low_watermark) for p, s in statuses.items())
    )
