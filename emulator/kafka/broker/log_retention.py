"""Retention: deletes old segments by time, by size, and below the log start.

Owns which segments are deletable; uncommitted records are not. Source: log/LogManager.scala
cleanupLogs, log/Log.scala@2.6.3 deleteOldSegments.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_manager import LogManager
from emulator.kafka.broker.partition import Partition
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.offset_log import OffsetLog, Segment
from emulator.kernel.sync import Promise
from emulator.trace.values import TopicPartition
from zk.wire import labelled

LONGEST_MS = 7 * 24 * 3_600_000
"""Kafka's default retention."""
INITIAL_DELAY_MS = 30_000
"""LogManager.scala@2.6.3 InitialTaskDelayMs."""

ShouldDelete = Callable[[Segment, Segment | None], bool]
"""Decides about a segment, given it and the next one."""


class LogRetention:
    """The periodic tasks of LogManager that concern where logs start."""

    def __init__(
        self,
        context: BrokerContext,
        logs: LogManager,
        hosted: Callable[[TopicPartition], Partition | None],
    ) -> None:
        self._context, self._logs, self._hosted = context, logs, hosted
        self._is_due: Promise[None] = Promise(context.kernel)
        self._due_ms = logs.wall_ms() + LONGEST_MS
        """No run before this time finds anything to delete."""
        self._log_start_moved: Promise[None] = Promise(context.kernel)
        logs.on_change = self._reconsider

    def start(self) -> None:
        """Runs that would delete nothing are skipped; with Kafka's defaults for a week."""
        config, schedule = self._context.config, self._context.scheduler.schedule_when
        schedule(
            "kafka-log-retention",
            self._until_due,
            self.delete_old_segments,
            config.log_retention_check_interval_ms,
            INITIAL_DELAY_MS,
        )
        schedule(
            "kafka-log-start-offset-checkpoint",
            self._until_log_start_moved,
            self._checkpoint,
            config.log_flush_start_offset_checkpoint_interval_ms,
            INITIAL_DELAY_MS,
        )

    async def _until_log_start_moved(self) -> None:
        await self._log_start_moved.wait()

    async def _checkpoint(self) -> None:
        self._log_start_moved = Promise(self._context.kernel)
        self._logs.checkpoint_log_start_offsets()

    async def _until_due(self) -> None:
        kernel = self._context.kernel
        while (left_ms := self._due_ms - self._logs.wall_ms()) > 0:
            self._is_due = Promise(kernel)
            task = kernel.this_task()
            # No longer than Kafka waits from run to run: the wall clock may jump meanwhile.
            wait_ms = min(left_ms, self._context.config.log_retention_check_interval_ms)
            timer = task.process.lane(task.thread).call_later(wait_ms * 1000, self._on_due)
            await self._is_due.wait()
            timer.cancel()

    @labelled("timeout")
    def _on_due(self) -> None:
        self._is_due.resolve(None)

    def _reconsider(self, partition: TopicPartition, log: OffsetLog) -> None:
        """A log was opened, or its settings or its start have changed."""
        if log.segments and log.log_start_offset > log.segments[0].base_offset:
            self._log_start_moved.resolve(None)
        due_ms = self._due(partition, log)
        if due_ms < self._due_ms:
            self._due_ms = due_ms
            self._is_due.resolve(None)

    def _due(self, partition: TopicPartition, log: OffsetLog) -> int:
        """The earliest time at which a segment of this log can be deleted."""
        now_ms, config, topic = self._logs.wall_ms(), self._context.config, partition.topic
        segments = log.segments
        if len(segments) > 1 and segments[1].base_offset <= log.log_start_offset:
            return now_ms
        if not self._logs.is_deleting(topic):
            return now_ms + LONGEST_MS
        if self._logs.number_of(topic, "retention.bytes", config.log_retention_bytes) >= 0:
            return now_ms
        retention_ms = self._logs.number_of(topic, "retention.ms", config.log_retention_ms)
        if retention_ms < 0:
            return now_ms + LONGEST_MS
        oldest_ms = segments[0].largest_ms if segments else -1
        return retention_ms + (oldest_ms if oldest_ms >= 0 else now_ms)

    async def delete_old_segments(self) -> None:
        """One run, over all logs."""
        self._run()
        logs = self._logs.open_logs()
        never_ms = self._logs.wall_ms() + LONGEST_MS
        self._due_ms = min((self._due(p, log) for p, log in logs), default=never_ms)

    def _run(self) -> None:
        for partition, log in self._logs.open_logs():
            hosted = self._hosted(partition)
            if hosted is None or hosted.log is not log:
                continue
            try:
                self._delete_old_segments(hosted, log)
            except KafkaError as error:
                self._context.failed("kafka-log-retention", error)

    def _delete_old_segments(self, hosted: Partition, log: OffsetLog) -> None:
        config, topic = self._context.config, hosted.partition.topic
        if self._logs.is_deleting(topic):
            retention_ms = self._logs.number_of(topic, "retention.ms", config.log_retention_ms)
            now_ms = self._logs.wall_ms()
            if retention_ms >= 0:
                # A segment without a time stamp is as old as its file, which is not known here.
                self._delete(hosted, log, lambda it, _: 0 <= it.largest_ms < now_ms - retention_ms)
            limit = self._logs.number_of(topic, "retention.bytes", config.log_retention_bytes)
            excess = sum(segment.size for segment in log.segments) - limit

            def is_beyond_size(segment: Segment, _: Segment | None) -> bool:
                nonlocal excess
                excess -= segment.size
                return excess >= 0

            if limit >= 0 and excess > 0:
                self._delete(hosted, log, is_beyond_size)
        self._delete(
            hosted,
            log,
            lambda _, following: (
                following is not None and following.base_offset <= log.log_start_offset
            ),
        )

    @staticmethod
    def _delete(hosted: Partition, log: OffsetLog, should_delete: ShouldDelete) -> None:
        """Delete the oldest segments, up to the first that must stay (deletableSegments)."""
        number, segments = 0, log.segments
        for number, segment in enumerate(segments):
            following = segments[number + 1] if number + 1 < len(segments) else None
            end = log.log_end_offset if following is None else following.base_offset
            is_empty = following is None and not segment.size
            if end > log.high_watermark or is_empty or not should_delete(segment, following):
                break
        else:
            number = len(segments)
        if number:
            hosted.idle_fetches.wake()
            log.delete_segments(number)
            hosted.increment_log_start(log.segments[0].base_offset, "segment deletion")
