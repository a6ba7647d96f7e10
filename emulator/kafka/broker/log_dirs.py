"""A broker's disk: its log directories, their content, and what a crash loses.

It survives the broker's process. After a crash of the process the logs, the epoch caches (a file
that is synced with each entry) and the checkpointed high watermarks remain. A crash of the machine
may lose everything not flushed; a replaced disk loses everything. A failed directory rejects every
write until it is repaired. Sources: log/LogManager.scala@2.6.3, log/Log.scala@2.6.3
(recoveryPoint), server/checkpoints/OffsetCheckpointFile.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.kafka.model.offset_log import OffsetLog
from emulator.trace.values import TopicPartition

NOTHING, UNFLUSHED, DISK = "nothing", "unflushed", "disk"
"""What a crash loses in addition to the memory."""


class LogDirectory:
    """One of `log.dirs`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.failed = False
        self.on_failure: Callable[[LogDirectory], None] = lambda _: None
        """Called when a write fails (LogDirFailureChannel)."""
        self.logs: dict[TopicPartition, OffsetLog] = {}
        self.checkpointed_high_watermarks: dict[TopicPartition, int] = {}
        self.checkpointed_log_starts: dict[TopicPartition, int] = {}
        """Of logs that start behind the beginning of their first segment."""

    def open_log(self, partition: TopicPartition) -> OffsetLog:
        """The existing log, or a new one."""
        return self.logs.setdefault(partition, OffsetLog())

    def remove_log(self, partition: TopicPartition) -> None:
        """Remove the log and its checkpointed high watermark."""
        self.logs.pop(partition, None)
        self.checkpointed_high_watermarks.pop(partition, None)
        self.checkpointed_log_starts.pop(partition, None)

    def close(self) -> None:
        """The process ends in an orderly way: close open files."""

    def checkpoint(self, marks: dict[TopicPartition, int]) -> None:
        """Rewrite replication-offset-checkpoint."""
        self.checkpointed_high_watermarks = marks

    def checkpoint_log_starts(self, offsets: dict[TopicPartition, int]) -> None:
        """Rewrite log-start-offset-checkpoint."""
        self.checkpointed_log_starts = offsets


class Disk:
    """The log directories of one broker."""

    def __init__(self, directories: int = 1) -> None:
        self.directories = [LogDirectory(n) for n in range(directories)]
        self.ms_per_append = 0

    @property
    def logs(self) -> dict[TopicPartition, OffsetLog]:
        """All logs of all directories."""
        return {p: log for d in self.directories for p, log in d.logs.items()}

    @property
    def checkpointed_high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks that a restart after a crash would read."""
        marks: Iterator[tuple[TopicPartition, int]] = (
            entry for d in self.directories for entry in d.checkpointed_high_watermarks.items()
        )
        return dict(marks)

    def lose(self, what: str) -> None:
        """The broker's process has just died: lose this as well."""
        # Flushed records and their epochs stay. The high watermarks are in a separate file, which
        # is synced when it is written.
        if what == UNFLUSHED:
            for log in self.logs.values():
                # No log begins before its first segment, whose file's name says where it begins.
                first = log.segments[0].base_offset if log.segments else 0
                log.truncate_to(max(log.recovery_point, first))
        elif what == DISK:
            self.directories = [LogDirectory(d.number) for d in self.directories]
