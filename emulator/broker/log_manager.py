"""The broker's logs: created with the topic's configuration, slow where the disk is, checkpointed
every 5 s.

What a crash keeps lives in `Disk`, which outlives the process: the logs themselves, their epoch
caches, and the high watermarks of the last checkpoint. Sources: log/LogManager.scala@2.6.3,
server/checkpoints/OffsetCheckpointFile.scala@2.6.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.broker.context import BrokerContext
from emulator.model.offset_log import OffsetLog
from emulator.trace.values import TopicPartition
from zk.kafka_zk_client import KafkaZkClient


@dataclass
class Disk:
    """A log directory: survives its broker's process."""

    logs: dict[TopicPartition, OffsetLog] = field(default_factory=dict)
    checkpointed_high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    ms_per_append: int = 0


class LogManager:
    """Logs by partition, and the topics' configuration as far as replication obeys it."""

    def __init__(self, context: BrokerContext, zk_client: KafkaZkClient, disk: Disk) -> None:
        self._context, self._zk_client, self._disk = context, zk_client, disk
        self._topic_configs: dict[str, dict[str, str]] = {}
        self._open: dict[TopicPartition, OffsetLog] = {}

    async def get_or_create(self, partition: TopicPartition, *, is_new: bool) -> OffsetLog:
        """Open a log, or make it; reads the topic's configuration from ZooKeeper as Kafka does for
        each new log, and takes the high watermark of the last checkpoint."""
        log = self._open.get(partition)
        if log is not None:
            return log
        self._topic_configs[partition.topic] = await self._zk_client.get_entity_configs(
            "topics", partition.topic
        )
        known = partition in self._disk.logs
        await self._context.kernel.checkpoint("open_log" if known else "create_log")
        log = self._disk.logs.setdefault(partition, OffsetLog())
        hw = self._disk.checkpointed_high_watermarks.get(partition, 0)
        log.high_watermark = min(max(hw, log.log_start_offset), log.log_end_offset)
        self._open[partition] = log
        return log

    @property
    def slow(self) -> bool:
        """Whether the disk takes its time."""
        return self._disk.ms_per_append > 0

    async def append_delay(self) -> None:
        """What one append costs on a slow disk."""
        await self._context.kernel.sleep(self._disk.ms_per_append * 1000)

    def checkpoint_high_watermarks(self) -> None:
        """replication-offset-checkpoint: what a crash will find."""
        for partition, log in self._open.items():
            self._disk.checkpointed_high_watermarks[partition] = log.high_watermark

    def delete(self, partition: TopicPartition) -> None:
        """The log and its checkpointed high watermark go."""
        self._open.pop(partition, None)
        self._disk.logs.pop(partition, None)
        self._disk.checkpointed_high_watermarks.pop(partition, None)

    def set_topic_config(self, topic: str, config: dict[str, str]) -> None:
        """A dynamic change of a topic's configuration arrived."""
        self._topic_configs[topic] = config

    def topic_config(self, topic: str, key: str) -> str | None:
        """A topic's override."""
        return self._topic_configs.get(topic, {}).get(key)

    def min_insync_replicas(self, topic: str) -> int:
        """The topic's setting, else the broker's."""
        override = self.topic_config(topic, "min.insync.replicas")
        return int(override) if override is not None else self._context.config.min_insync_replicas
