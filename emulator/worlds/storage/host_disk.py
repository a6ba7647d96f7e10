"""The disk of an emulated broker, which outlives its processes: in memory or in files.

With files the next process gets what the storage code reads back from a modelled disk; in memory it
gets the logs unchanged.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Set
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from emulator.kafka.broker.log_dirs import DISK, UNFLUSHED, Disk
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.profiles.guards.base import Guard
from emulator.scenario.errors import UserError
from emulator.worlds.storage.modelled_disk import Draw, Fault, ModelledDisk
from emulator.worlds.storage.stored_logs import SEGMENT, claim, log_folders, stored_disk


class HostDisk(Protocol):
    """A host's operations on its disk."""

    disk: Disk
    """As the broker's present process has it."""

    def boot(self, config: KafkaConfig, guards: Set[Guard]) -> Disk:
        """The disk for the next process."""
        ...

    def lose(self, what: str) -> None:
        """See Disk."""
        ...

    def fail(self, directory: int) -> None:
        """Let every call for a log directory fail."""
        ...

    def repair(self, directory: int) -> None: ...


class DiskInMemory:
    """Logs without files: the only possible fault is their loss."""

    def __init__(self, directories: int) -> None:
        self.disk = Disk(directories)

    def boot(self, config: KafkaConfig, guards: Set[Guard]) -> Disk:
        return self.disk

    def lose(self, what: str) -> None:
        self.disk.lose(what)

    def fail(self, directory: int) -> None:
        self.disk.directories[directory].failed = True

    def repair(self, directory: int) -> None:
        self.disk.directories[directory].failed = False


class DiskInFiles:
    """Logs in the files of a modelled disk."""

    def __init__(
        self, broker: int, config: KafkaConfig, draw: Draw, now_us: Callable[[], int]
    ) -> None:
        self._broker, self._draw = broker, draw
        self.files = ModelledDisk(draw, now_us)
        self._folders = log_folders(Path("/data"), config)
        self.disk = Disk(config.log_directories)
        self._claim = ExitStack()
        self._make_folders()

    def _make_folders(self) -> None:
        """Create the log directories, as an administrator would have done before."""
        for folder in self._folders:
            self.files.make_directory(folder)
            for one in folder.parents:
                self.files.fsync_directory(one)

    def boot(self, config: KafkaConfig, guards: Set[Guard]) -> Disk:
        """The logs that were read back. If a folder cannot be claimed, no directory works."""
        self.files.end_process()
        ms_per_append = self.disk.ms_per_append
        try:
            with ExitStack() as claimed:
                claimed.enter_context(claim(self.files, Path("/data"), self._broker))
                self.disk = stored_disk(self.files, Path("/data"), config, guards, _say_nothing)
                self._claim = claimed.pop_all()
        except UserError:
            self.disk = Disk(config.log_directories)
            for directory in self.disk.directories:
                directory.failed = True
        self.disk.ms_per_append = ms_per_append
        return self.disk

    def lose(self, what: str) -> None:
        if what == UNFLUSHED:
            self.files.crash()
        elif what == DISK:
            self.files.wipe()
            self._make_folders()

    def fail(self, directory: int) -> None:
        self.fail_calls(directory, "", None)
        self.disk.directories[directory].failed = True

    def repair(self, directory: int) -> None:
        folder = self._folders[directory]
        self.files.faults = [fault for fault in self.files.faults if fault.under != folder]

    def fail_calls(self, directory: int, call: str, count: int | None) -> None:
        self.files.faults.append(
            Fault(call, errno.EIO, count=count or 0, under=self._folders[directory])
        )

    def shorten_writes(self, directory: int) -> None:
        self.files.faults.append(Fault(code=0, count=0, under=self._folders[directory]))

    def damage_log(self, directory: int, how: str) -> None:
        """Damage a randomly chosen log file; does nothing if no log has a record."""
        folder = self._folders[directory]
        logs = [
            path
            for path, size in self.files.files()
            if size and path.is_relative_to(folder) and SEGMENT.fullmatch(path.name)
        ]
        if logs:
            path = logs[self._draw(len(logs))]
            if how == "bit_flip":
                self.files.flip_bit(path)
            else:
                self.files.break_sector(path)


def _say_nothing(_: str) -> None:
    """No message: losses appear in the trace when the log is opened."""
