"""The broker's logs: created with the topic's configuration, slow where the disk is, checkpointed
every 5 s, gone where a directory fails.

Owns which directories this process still serves. What outlives the process is in `log_dirs.Disk`.
Sources: log/LogManager.scala@2.6.3, server/LogDirFailureChannel.scala@2.6.3,
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
)
from emulator.kernel.sync import Queue
from emulator.trace.values import TopicPartition
from zk.client.kafka_zk_client import KafkaZkClient


class LogManager:
    """Logs by partition, and the topics' configuration as far as replication obeys it."""

    def __init__(
        self,
        context: BrokerContext,
        zk_client: KafkaZkClient,
        disk: Disk,
        halt: Callable[[str], None],
    ) -> None:
        """`halt` ends the process at once."""
        self._halt = halt
        self._context, self._zk_client, self._disk = context, zk_client, disk
        self._topic_configs: dict[str, dict[str, str]] = {}
        self._open: dict[TopicPartition, tuple[OffsetLog, LogDirectory]] = {}
        # Failed when the process starts: it serves the others, and reports nothing of these.
        self._offline = {d.number: None for d in disk.directories if d.failed}
        self.failures: Queue[LogDirectory] = Queue(context.kernel)
        self._reported: dict[int, None] = dict(self._offline)
        for directory in disk.directories:
            directory.on_failure = self._report

    # -- directories -------------------------------------------------------------------------------

    @property
    def live_directories(self) -> list[LogDirectory]:
        """Those that this process serves; one that was repaired is served by the next process."""
        return [d for d in self._disk.directories if d.number not in self._offline]

    def check(self, directory: LogDirectory) -> None:
        """A write to a directory that failed is noted once (LogDirFailureChannel) and is an
        error; up to 0.11 it is the end of the broker."""
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
        """Its logs are forgotten; False when no directory is left, which halts the broker."""
        self._offline[directory.number] = None
        self._open = {p: entry for p, entry in self._open.items() if entry[1] is not directory}
        return bool(self.live_directories)

    # -- logs --------------------------------------------------------------------------------------

    async def get_or_create(
        self, partition: TopicPartition, *, is_new: bool
    ) -> tuple[OffsetLog, LogDirectory]:
        """Open a log, or make it; reads the topic's configuration from ZooKeeper as Kafka does for
        each new log, and takes the high watermark of the last checkpoint."""
        opened = self._open.get(partition)
        if opened is not None:
            return opened
        # With the caller's locks held, leaderIsrUpdateLock and replicaStateChangeLock among them: a
        # ZooKeeper that does not answer stops the whole LeaderAndIsr here.
        self._topic_configs[partition.topic] = await self._zk_client.get_entity_configs(
            "topics", partition.topic
        )
        live = self.live_directories
        directory = next((d for d in live if partition in d.logs), None)
        if directory is None:
            # It may be on the directory that is offline: to begin an empty log elsewhere would lose
            # what is there (KIP-112). A partition that is new cannot be there yet.
            if not is_new and self._offline:
                raise KafkaError(Errors.KAFKA_STORAGE_ERROR)
            # nextLogDir: the directory with the fewest logs.
            directory = min(live, key=lambda d: len(d.logs))
        self.check(directory)
        known = partition in directory.logs
        await self._context.kernel.checkpoint("open_log" if known else "create_log")
        log = directory.open_log(partition)
        # 0 where no checkpoint has it: the high watermark then rises from there, as the leader says
        # or the followers fetch.
        hw = directory.checkpointed_high_watermarks.get(partition, 0)
        log.high_watermark = min(max(hw, log.log_start_offset), log.log_end_offset)
        log.flush_interval_messages = self._flush_interval(partition.topic)
        log.record_batches = self._context.profile.record_batches
        log.epochs.is_monotonic = EPOCH_START_RECORDED in self._context.guards
        log.drops_epochs_at_end = EPOCHS_DROPPED_AT_LOG_END in self._context.guards
        # An epoch without a record does not outlive the process (Log.scala@2.6.3, its constructor).
        log.epochs.truncate_from_end(log.log_end_offset)
        self._open[partition] = log, directory
        return log, directory

    @property
    def slow(self) -> bool:
        """Whether the disk takes its time."""
        return self._disk.ms_per_append > 0

    async def append_delay(self) -> None:
        """What one append costs on a slow disk."""
        await self._context.kernel.sleep(self._disk.ms_per_append * 1000)

    def checkpoint_high_watermarks(self) -> None:
        """replication-offset-checkpoint, one file per directory, rewritten whole: a restart after a
        crash reads it. Partitions that are not hosted yet are not in it.
        """
        for directory in self.live_directories:
            marks = {
                p: log.high_watermark for p, (log, at) in self._open.items() if at is directory
            }
            # An empty file would forget what the last process wrote of logs that are not open yet.
            if not marks:
                continue
            # A broker that appends nothing notices the failed directory here.
            if directory.failed:
                self._report(directory)
            else:
                directory.checkpoint(marks)

    def shutdown(self) -> None:
        """An orderly end flushes every log; one that cannot be does not keep the others from it
        (LogManager.scala@2.6.3 shutdown)."""
        for log, directory in self._open.values():
            if not directory.failed:
                with suppress(KafkaError):
                    log.flush()

    def delete(self, partition: TopicPartition) -> None:
        """The log and its checkpointed high watermark go."""
        self._open.pop(partition, None)
        for directory in self.live_directories:
            directory.remove_log(partition)

    # -- configuration -----------------------------------------------------------------------------

    def set_topic_config(self, topic: str, config: dict[str, str]) -> None:
        """A dynamic change of a topic's configuration arrived."""
        self._topic_configs[topic] = config
        for partition, (log, _) in self._open.items():
            if partition.topic == topic:
                log.flush_interval_messages = self._flush_interval(topic)

    def topic_config(self, topic: str, key: str) -> str | None:
        """A topic's override."""
        return self._topic_configs.get(topic, {}).get(key)

    def _flush_interval(self, topic: str) -> int:
        override = self.topic_config(topic, "flush.messages")
        default = self._context.config.log_flush_interval_messages
        return int(override) if override is not None else default

    def min_insync_replicas(self, topic: str) -> int:
        """The topic's setting, else the broker's."""
        override = self.topic_config(topic, "min.insync.replicas")
        return int(override) if override is not None else self._context.config.min_insync_replicas
