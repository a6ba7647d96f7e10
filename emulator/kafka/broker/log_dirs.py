"""A broker's disk: its log directories, what each holds, and what of it a crash loses.

Survives the broker's process. A crash of the process keeps logs, epoch caches (a file that is
synced with each entry) and the high watermarks of the last checkpoint; a crash of the machine may
lose what was never flushed, a replaced disk everything. A directory that failed answers every
write with an error until it is repaired. Sources: log/LogManager.scala@2.6.3, log/Log.scala@2.6.3
(recoveryPoint), server/checkpoints/OffsetCheckpointFile.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.kafka.model.offset_log import OffsetLog
from emulator.trace.values import TopicPartition

NOTHING, UNFLUSHED, DISK = "nothing", "unflushed", "disk"
"""What a crash loses beside what is in memory."""


class LogDirectory:
    """One of `log.dirs`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.failed = False
        self.on_failure: Callable[[LogDirectory], None] = lambda _: None
        """Who hears of a write that failed, when it fails (LogDirFailureChannel)."""
        self.logs: dict[TopicPartition, OffsetLog] = {}
        self.checkpointed_high_watermarks: dict[TopicPartition, int] = {}

    def open_log(self, partition: TopicPartition) -> OffsetLog:
        """The log that is there, or a new one."""
        return self.logs.setdefault(partition, OffsetLog())

    def remove_log(self, partition: TopicPartition) -> None:
        """The log and its checkpointed high watermark go."""
        self.logs.pop(partition, None)
        self.checkpointed_high_watermarks.pop(partition, None)

    def close(self) -> None:
        """The process ends in an orderly way; what is open is let go."""

    def checkpoint(self, marks: dict[TopicPartition, int]) -> None:
        """Rewrite replication-offset-checkpoint."""
        self.checkpointed_high_watermarks = marks


class Disk:
    """The log directories of one broker."""

    def __init__(self, directories: int = 1) -> None:
        self.directories = [LogDirectory(n) for n in range(directories)]
        self.ms_per_append = 0

    @property
    def logs(self) -> dict[TopicPartition, OffsetLog]:
        """All logs, wherever they are."""
        return {p: log for d in self.directories for p, log in d.logs.items()}

    @property
    def checkpointed_high_watermarks(self) -> dict[TopicPartition, int]:
        """What a crash would find of them."""
        marks: Iterator[tuple[TopicPartition, int]] = (
            entry for d in self.directories for entry in d.checkpointed_high_watermarks.items()
        )
        return dict(marks)

    def lose(self, what: str) -> None:
        """The broker's process has just died, and this is lost with it."""
        # What was flushed stays, and with it its epochs; the high watermarks are in a file of their
        # own, which is synced when it is written.
        if what == UNFLUSHED:
            for log in self.logs.values():
                log.truncate_to(log.recovery_point)
        elif what == DISK:
            self.directories = [LogDirectory(d.number) for d in self.directories]
