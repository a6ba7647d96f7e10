"""The broker's logs: created with the topic's configuration, checkpointed every 5 s, offline when
their directory fails.

Owns the directories that this process still serves. `log_dirs.Disk` has the state that survives the
process. Sources: log/LogManager.scala@2.6.3, server/LogDirFailureChannel.scala@2.6.3,
server/ReplicaManager.scala@2.6.3 checkpointHighWatermarks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from emulator.kafka.broker.context import BrokerContext
from emulator.kafka.broker.log_dirs import Disk, LogDirectory
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.offset_log import OffsetLog
from emulator.kafka.profiles.guards.following import (
    EPOCH_START_RECORDED,
    EPOCHS_DROPPED_AT_LOG_END,
    LOG_DIRS_FAIL_ALONE,
    LOG_START_FOLLOWED,
)
from emulator.kafka.profiles.guards.storage import CONFIG_READ_FOR_NEW_LOGS
from emulator.kernel.sync import Queue
from emulator.trace.values import TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient


class LogManager:
    """Logs by partition, and the topic configurations that affect replication."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        disk: Disk,
        halt: Callable[[str], None],
        wall_ms: Callable[[], int] | None = None,
    ) -> None:
        """`halt` ends the process at once; `wall_ms` is for time stamps of records."""
        self._halt, self.wall_ms = halt, wall_ms or context.now_ms
        self._context, self._zk_client, self._disk = context, zk_client, disk
        self._topic_configs: dict[str, dict[str, str]] = {}
        self._open: dict[TopicPartition, tuple[OffsetLog, LogDirectory]] = {}
        # Directories that had failed before the start: this process does not serve or report them.
        self._offline = {d.number: None for d in disk.directories if d.failed}
        self.on_change: Callable[[TopicPartition, OffsetLog], None] = lambda *_: None
        """Hears of a log that is opened, has other settings, or starts elsewhere."""
        self.failures: Queue[LogDirectory] = Queue(context.kernel)
        self._reported: dict[int, None] = dict(self._offline)
        for directory in disk.directories:
            directory.on_failure = self._report

    # -- directories -------------------------------------------------------------------------------

    @property
    def live_directories(self) -> list[LogDirectory]:
        """The directories that this process serves; a repaired one is served by the next
        process."""
        return [d for d in self._disk.directories if d.number not in self._offline]

    def check(self, directory: LogDirectory) -> None:
        """Reject a write to a failed directory, and report the first one (LogDirFailureChannel). Up
        to 0.11 the broker halts."""
        if not directory.failed:
            return
        self._report(directory)
        raise KafkaError(Errors.KAFKA_STORAGE_ERROR)

    def _report(self, directory: LogDirectory) -> None:
        if directory.number not in self._reported:
            self._reported[directory.number] = None
            if LOG_DIRS_FAIL_ALONE not in self._context.guards:
                self._halt("a log directory cannot be written")
            self.failures.put(directory)

    def handle_log_dir_failure(self, directory: LogDirectory) -> bool:
        """Close the directory's logs; False if no directory is left: the broker then halts."""
        self._offline[directory.number] = None
        self._open = {p: entry for p, entry in self._open.items() if entry[1] is not directory}
        return bool(self.live_directories)

    # -- logs --------------------------------------------------------------------------------------

    async def get_or_create(
        self, partition: TopicPartition, *, is_new: bool
    ) -> tuple[OffsetLog, LogDirectory]:
        """Open or create a log. Reads the topic's configuration from ZooKeeper where Kafka does,
        and sets the high watermark from the last checkpoint."""
        opened = self._open.get(partition)
        if opened is not None:
            return opened
        kernel, profile = self._context.kernel, self._context.profile
        exists = any(partition in d.logs for d in self.live_directories)
        if not exists:
            await kernel.checkpoint("log_config")
            if profile.first_logs == "late-config":
                await kernel.checkpoint("log_config.late")
        if not exists or CONFIG_READ_FOR_NEW_LOGS not in self._context.guards:
            # The caller holds leaderIsrUpdateLock and replicaStateChangeLock: if ZooKeeper does not
            # respond, the whole LeaderAndIsr stops here.
            self._topic_configs[partition.topic] = await self._zk_client.get_entity_configs(
                "topics", partition.topic
            )
        live = self.live_directories
        directory = next((d for d in live if partition in d.logs), None)
        if directory is None:
            # The log may be on the offline directory: an empty log elsewhere would lose its records
            # (KIP-112). A new partition cannot be there yet.
            if not is_new and self._offline:
                raise KafkaError(Errors.KAFKA_STORAGE_ERROR)
            # nextLogDir: the directory with the fewest logs.
            directory = min(live, key=lambda d: len(d.logs))
        self.check(directory)
        if partition in directory.logs:
            await kernel.checkpoint("open_log")
            if profile.restarted_roles != "quick":
                await kernel.checkpoint("open_log.early")
            if profile.restarted_roles == "slowest":
                await kernel.checkpoint("open_log.first")
        else:
            await kernel.checkpoint("create_log")
            if profile.first_logs != "late-config":
                await kernel.checkpoint("create_log.early")
            if profile.first_logs == "slowest":
                await kernel.checkpoint("create_log.first")
        log = directory.open_log(partition)
        self._configure(partition.topic, log)
        self._load_log_start(partition, log, directory)
        # 0 without a checkpoint entry: it then rises with the leader's responses or the followers'
        # fetches.
        hw = directory.checkpointed_high_watermarks.get(partition, 0)
        # Limited to the log: a crash of the machine may have lost records below the checkpoint's
        # value.
        log.high_watermark = min(max(hw, log.log_start_offset), log.log_end_offset)
        log.record_batches = self._context.profile.record_batches
        log.epochs.is_monotonic = EPOCH_START_RECORDED in self._context.guards
        log.drops_epochs_at_end = EPOCHS_DROPPED_AT_LOG_END in self._context.guards
        # An epoch without a record does not survive the process (Log.scala@2.6.3, its constructor).
        log.epochs.truncate_from_end(log.log_end_offset)
        self._open[partition] = log, directory
        self.on_change(partition, log)
        return log, directory

    @staticmethod
    def _load_log_start(partition: TopicPartition, log: OffsetLog, directory: LogDirectory) -> None:
        """Where the first segment begins, or behind it if a checkpoint says so; what was deleted
        since that was written is served again after a crash (Log.scala@2.6.3, its constructor)."""
        first = log.segments[0].base_offset if log.segments else log.log_end_offset
        start = max(directory.checkpointed_log_starts.get(partition, 0), first)
        if start > log.log_end_offset:
            # The machine crashed, and lost what stood behind the deleted records.
            log.truncate_fully_and_start_at(start)
        log.log_start_offset = start

    def is_slow(self) -> bool:
        """Whether appends take time. Not a property: every append asks, and a call costs less."""
        return self._disk.ms_per_append > 0

    async def append_delay(self) -> None:
        """Block for the duration of one append on a slow disk."""
        await self._context.kernel.sleep(self._disk.ms_per_append * 1000)

    def checkpoint_high_watermarks(self) -> None:
        """Rewrite replication-offset-checkpoint, one file per directory; a restart after a crash
        reads it. Partitions that are not hosted yet are missing in it."""
        for directory in self.live_directories:
            marks = {
                p: log.high_watermark for p, (log, at) in self._open.items() if at is directory
            }
            # An empty file would lose the previous process's entries of logs that are not open yet.
            if not marks:
                continue
            # A broker without appends notices a failed directory here.
            if directory.failed:
                self._report(directory)
            else:
                directory.checkpoint(marks)

    def checkpoint_log_start_offsets(self) -> None:
        """log-start-offset-checkpoint: of logs that start within a segment
        (checkpointLogStartOffsets)."""
        if LOG_START_FOLLOWED not in self._context.guards:
            return
        for directory in self.live_directories:
            starts = {
                p: log.log_start_offset
                for p, (log, at) in self._open.items()
                if at is directory
                and log.segments
                and log.log_start_offset > log.segments[0].base_offset
            }
            if starts != directory.checkpointed_log_starts and not directory.failed:
                directory.checkpoint_log_starts(starts)

    def open_logs(self) -> list[tuple[TopicPartition, OffsetLog]]:
        """Of directories that this process serves and that can be written to."""
        return [(p, log) for p, (log, at) in self._open.items() if not at.failed]

    def shutdown(self) -> None:
        """An orderly end flushes every log; a failed flush does not prevent the others
        (LogManager.scala@2.6.3 shutdown)."""
        self.checkpoint_log_start_offsets()
        for log, directory in self._open.values():
            if not directory.failed:
                with suppress(KafkaError):
                    log.flush()

    def delete(self, partition: TopicPartition) -> None:
        """Delete the log and its checkpointed high watermark."""
        self._open.pop(partition, None)
        for directory in self.live_directories:
            directory.remove_log(partition)

    # -- configuration -----------------------------------------------------------------------------

    def set_topic_config(self, topic: str, config: dict[str, str]) -> None:
        """Apply a dynamic change of a topic's configuration."""
        self._topic_configs[topic] = config
        for partition, (log, _) in self._open.items():
            if partition.topic == topic:
                self._configure(topic, log)
                self.on_change(partition, log)

    def topic_config(self, topic: str, key: str) -> str | None:
        """A topic's override of a setting."""
        return self._topic_configs.get(topic, {}).get(key)

    def _configure(self, topic: str, log: OffsetLog) -> None:
        config = self._context.config
        log.flush_interval_messages = self.number_of(
            topic, "flush.messages", config.log_flush_interval_messages
        )
        log.segment_bytes = self.number_of(topic, "segment.bytes", config.log_segment_bytes)
        log.segment_ms = self.number_of(topic, "segment.ms", config.log_roll_ms)

    def number_of(self, topic: str, key: str, default: int) -> int:
        """The topic's setting, else the broker's."""
        override = self.topic_config(topic, key)
        return int(override) if override is not None else default

    def is_deleting(self, topic: str) -> bool:
        """Whether its cleanup.policy is not only to compact (LogConfig.scala@2.6.3 delete)."""
        policy = self.topic_config(topic, "cleanup.policy")
        return "delete" in (policy or self._context.config.log_cleanup_policy)

    def min_insync_replicas(self, topic: str) -> int:
        """The topic's setting, else the broker's."""
        return self.number_of(
            topic, "min.insync.replicas", self._context.config.min_insync_replicas
        )
