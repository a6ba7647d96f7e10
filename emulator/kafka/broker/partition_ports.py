"""What a partition needs of its broker: parked requests, and the log directories.

Protocols alone, so that a partition can be hosted by something smaller than a ReplicaManager. They
must not know a partition's rules.
"""

from __future__ import annotations

from typing import Protocol

from emulator.kafka.broker.log_dirs import LogDirectory
from emulator.kafka.model.offset_log import OffsetLog
from emulator.trace.values import TopicPartition


class DelayedOperations(Protocol):
    """Requests parked on this partition (DelayedOperations)."""

    async def check_and_complete_fetch(self, partition: TopicPartition) -> None: ...

    async def check_and_complete_all(self, partition: TopicPartition) -> None: ...

    def about_to_change(self, partition: TopicPartition) -> None:
        """Who looked at the partition has to look again when he looks next."""
        ...


class Logs(Protocol):
    """The broker's log directory (LogManager)."""

    async def get_or_create(
        self, partition: TopicPartition, *, is_new: bool
    ) -> tuple[OffsetLog, LogDirectory]: ...

    def check(self, directory: LogDirectory) -> None:
        """KafkaError(KAFKA_STORAGE_ERROR) where the directory cannot be written."""
        ...

    async def append_delay(self) -> None:
        """What a slow disk costs per append."""
        ...

    @property
    def slow(self) -> bool: ...

    def min_insync_replicas(self, topic: str) -> int: ...
