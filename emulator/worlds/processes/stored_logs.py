"""Logs in files, as Kafka lays them: segments, leader epochs, high watermarks.

What a broker's process finds again after a SIGKILL: every write goes to the operating system before
anything follows from it; checkpoints are written aside and renamed. Bytes that do not continue a
log are cut off, reported, and kept beside it. A directory with an unreadable checkpoint has failed.
A write is whole or the directory has failed, until the broker's next process; a process that has no
descriptors left has only failed to write. Files are readable by their owner alone. Indices are not
written. Sources: Log.scala, LogSegment.scala, CheckpointFile.scala, OffsetCheckpointFile.scala,
LeaderEpochCheckpointFile.scala, LogDirFailureChannel.scala@2.6.3.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from emulator.kafka.broker.log_dirs import Disk, LogDirectory
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.offset_log import Batch, EpochCache, EpochEntry, OffsetLog
from emulator.scenario.errors import UserError
from emulator.trace.values import TopicPartition
from emulator.worlds.processes.log_recovery import offset_behind, recover
from emulator.worlds.wire.records import written

SEGMENT_BYTES = 1 << 30
"""log.segment.bytes as Kafka has it by default."""

REPLICATION_OFFSETS = "replication-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
GAPS = "truncation-gaps"
"""Not Kafka's: without it a gap looks like a damaged offset."""
META = "meta.properties"
LOCK = ".lock"
TORN = ".torn"
"""Behind a segment's name: what was cut off it."""

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""The process has too many open files: that says nothing about a disk."""

_LOG = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})")
_SEGMENT = re.compile(r"\d{20}\.log")
_OFFSET, _TWO_NUMBERS = re.compile(r"\S+ \d{1,10} \d{1,19}"), re.compile(r"\d{1,19} \d{1,19}")


class BadCheckpoint(Exception):
    """A checkpoint file that cannot be read: whose, and what is wrong (an IOException there)."""


def stored_disk(folder: Path, config: KafkaConfig, log: Callable[[str], None]) -> Disk:
    """The disk of a broker whose log directories are in `folder` (more than one: `log-N` each).
    `log` receives which one fails, and why."""
    disk = Disk(config.log_directories)
    several = config.log_directories > 1
    places = [folder / f"log-{d.number}" if several else folder for d in disk.directories]
    try:
        disk.directories = [StoredDirectory(n, at, log=log) for n, at in enumerate(places)]
    except OSError as error:
        raise UserError(f"--data {folder}: {error.strerror}") from None
    return disk


@contextmanager
def claim(folder: Path, broker: int) -> Iterator[None]:
    """A folder belongs to one broker (meta.properties), and as long as this is entered to this
    process (.lock; LogManager.scala@2.6.3 lockLogDirs). UserError."""
    meta = folder / META
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(f"--data {folder}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not meta.exists():
                _replace(meta, f"version=0\nbroker.id={broker}\n")
            _check_meta(meta, broker)
        except BlockingIOError:
            raise UserError(
                f"--data {folder}: a running broker uses it ({LOCK}); stop that broker, or choose"
                " another directory"
            ) from None
        except OSError as error:
            raise UserError(f"--data {folder}: {error.strerror}") from None
        yield
    finally:
        os.close(lock)


def _check_meta(meta: Path, broker: int) -> None:
    """UserError: another broker's, or damaged."""
    lines = meta.read_bytes().decode(errors="replace").splitlines()
    pairs = dict(line.split("=", 1) for line in lines if "=" in line and line[0] not in "#!")
    number = pairs.get("broker.id", "").strip()
    if pairs.get("version", "").strip() != "0" or not re.fullmatch(r"\d{1,10}", number):
        raise UserError(
            f"{meta}: damaged: version=0 and broker.id=N are expected; restore the file, or delete"
            " it if the directory is of this broker"
        )
    if int(number) != broker:
        raise UserError(f"--data {meta.parent}: belongs to another broker ({META}: {number})")


class StoredDirectory(LogDirectory):
    """One of `log.dirs`, in a folder."""

    def __init__(
        self,
        number: int,
        folder: Path,
        segment_bytes: int = SEGMENT_BYTES,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(number)
        self.folder, self._segment_bytes, self._log = folder, segment_bytes, log
        self.why = ""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            for place in sorted(folder.iterdir()):
                match = _LOG.fullmatch(place.name)
                if match is not None and place.is_dir():
                    partition = TopicPartition(match["topic"], int(match["partition"]))
                    self.logs[partition] = StoredLog(self, place, segment_bytes, log)
            marks = _read_lines(folder / REPLICATION_OFFSETS, _OFFSET)
            self.checkpointed_high_watermarks = {
                TopicPartition(topic, int(number)): int(offset) for topic, number, offset in marks
            }
        except (BadCheckpoint, OSError) as error:  # LogManager.scala@2.6.3 loadLogs
            if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
                raise  # another process may have them
            self.fail(str(error))
        except KafkaError:
            pass  # an epoch checkpoint could not be written, and this has failed
        if self.failed:  # an offline directory has no logs, also not those that could be read
            self.logs.clear()

    def fail(self, why: str) -> KafkaError:
        """It is offline for as long as the process lives, also when there is space again; said once
        (LogDirFailureChannel.scala@2.6.3 maybeAddOfflineLogDir). What is to be raised."""
        if not self.failed:
            self.failed, self.why = True, why
            follows = "nothing in it is served until the broker starts again"
            self._log(f"log directory {self.folder} is offline: {why}; {follows}")
            self.on_failure(self)
        return KafkaError(Errors.KAFKA_STORAGE_ERROR, why)

    def failure(self, path: Path, error: OSError) -> KafkaError:
        """What is to be raised where that could not be written: the directory has failed, from now
        on (Log.scala@2.6.3 maybeHandleIOException). Where Kafka blames it for missing descriptors
        too, we do not: its files are as they were, and the write can be tried again."""
        why = f"{path}: {error.strerror}"
        if error.errno in NO_DESCRIPTORS:
            self._log(f"{why}: not written (ulimit -n)")
            return KafkaError(Errors.KAFKA_STORAGE_ERROR, why)
        return self.fail(why)

    def _place(self, partition: TopicPartition) -> Path:
        return self.folder / f"{partition.topic}-{partition.partition}"

    def open_log(self, partition: TopicPartition) -> OffsetLog:
        """See LogDirectory. KafkaError where it cannot be made: the directory has failed."""
        log = self.logs.get(partition)
        if log is None:
            try:
                place = self._place(partition)
                log = StoredLog(self, place, self._segment_bytes, self._log)
            except OSError as error:
                raise self.failure(place, error) from None
            self.logs[partition] = log
        return log

    def remove_log(self, partition: TopicPartition) -> None:
        """See LogDirectory."""
        log = self.logs.get(partition)
        if isinstance(log, StoredLog):
            log.close()
        super().remove_log(partition)
        shutil.rmtree(self._place(partition), ignore_errors=True)
        self.checkpoint(self.checkpointed_high_watermarks)

    def close(self) -> None:
        """Files are let go; the logs can be written to again."""
        for log in self.logs.values():
            if isinstance(log, StoredLog):
                log.close()

    def checkpoint(self, marks: dict[TopicPartition, int]) -> None:
        """See LogDirectory."""
        lines = [f"{p.topic} {p.partition} {offset}" for p, offset in marks.items()]
        path = self.folder / REPLICATION_OFFSETS
        try:
            _write_lines(path, lines)
        except OSError as error:
            self.failure(path, error)  # nobody waits for it: there is a next one
        else:
            super().checkpoint(marks)


class StoredEpochs(EpochCache):
    """An epoch cache whose file is written with each entry."""

    __slots__ = ("_directory", "_path")

    def __init__(
        self, directory: StoredDirectory, path: Path, entries: Iterable[EpochEntry] = ()
    ) -> None:
        super().__init__(tuple(entries))
        self._directory, self._path = directory, path

    def assign(self, epoch: int, start_offset: int) -> None:
        before = self.entries
        super().assign(epoch, start_offset)
        if self.entries[-1:] != before[-1:]:
            try:
                self.write()
            except KafkaError:
                self.entries = before  # it is not in the file: the next one tries again
                raise

    def truncate_from_end(self, end_offset: int) -> None:
        before = len(self.entries)
        super().truncate_from_end(end_offset)
        if len(self.entries) != before:
            self.write()

    def clear(self) -> None:
        super().clear()
        self.write()

    def write(self) -> None:
        """KafkaError: the directory has failed."""
        try:
            _write_lines(self._path, [f"{e.epoch} {e.start_offset}" for e in self.entries])
        except OSError as error:
            raise self._directory.failure(self._path, error) from None


class StoredLog(OffsetLog):
    """A log whose batches are in segment files as well; what is read comes from memory."""

    __slots__ = ("_directory", "_ends", "_file", "_folder", "_gaps", "_segment_bytes", "_segments")

    def __init__(
        self,
        directory: StoredDirectory,
        folder: Path,
        segment_bytes: int,
        log: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._directory, self._folder, self._segment_bytes = directory, folder, segment_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._segments: list[int] = []
        """Their base offsets."""
        self._ends: list[tuple[int, int]] = []
        """Of each batch: the place of its segment in `_segments`, and the offset in the file behind
        it."""
        self._file: BinaryIO | None = None
        entries = [
            EpochEntry(int(e), int(o)) for e, o in _read_lines(folder / LEADER_EPOCHS, _TWO_NUMBERS)
        ]
        self.epochs = StoredEpochs(directory, folder / LEADER_EPOCHS, entries)
        gaps = _read_lines(folder / GAPS, _TWO_NUMBERS)
        self._gaps = {int(end): int(base) for end, base in gaps}
        self._recover(log)
        self.epochs.truncate_from_end(self.log_end_offset)
        self.recovery_point = self.log_end_offset

    def _recover(self, log: Callable[[str], None]) -> None:
        """What the last process wrote whole. A log has no hole: what follows a batch that is not
        whole is cut off, and so are all segments behind it."""
        segments = sorted(path for path in self._folder.iterdir() if _SEGMENT.fullmatch(path.name))
        if segments:
            self.log_start_offset = self.log_end_offset = int(segments[0].stem)
        latest_epoch = self.epochs.latest_epoch
        where = problem = ""
        behind = cut = 0
        torn: list[str] = []
        for path in segments:
            data, base, at = path.read_bytes(), int(path.stem), 0
            if not problem and base in (end := self.log_end_offset, self._gaps.get(end)):
                self._segments.append(base)
                intact = recover(data, base, latest_epoch, self._gaps)
                for batch in intact.batches:
                    super()._append(batch)
                    at += batch.size
                    self._ends.append((len(self._segments) - 1, at))
                problem = intact.problem
            elif not problem and data:
                problem = f"it begins at offset {base}, and the log ends at {self.log_end_offset}"
            if problem and not where:
                where = f"{path.name} at byte {at}"
                behind = self.log_end_offset
            if at < len(data):
                behind = max(behind, offset_behind(data, at, self.log_end_offset))
                cut += len(data) - at
                torn.append(_keep(path, data[at:]))
            if at or base in self._segments:
                os.truncate(path, at)
            else:
                path.unlink()
        if not problem:
            return
        end, files = self.log_end_offset, ", ".join(torn)
        if behind > end:
            # A write that was cut off has nothing behind it: these were here, and are lost.
            log(
                f"log {self._folder}: corruption in {where} (offset {end}): {problem};"
                f" {behind - end} records up to offset {behind - 1} are cut off with it, {cut}"
                f" bytes, kept in {files}"
            )
        else:
            log(
                f"log {self._folder}: {where} (offset {end}): {problem}; no whole record follows,"
                f" {cut} bytes are cut off, kept in {files}"
            )

    # -- writing -----------------------------------------------------------------------------------

    def _append(self, batch: Batch) -> None:
        """All of it, or KafkaError and nothing."""
        data = written(batch)
        # Before the records, as in Log.scala@2.6.3 append: once they are in the file nothing fails.
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        last = len(self._segments) - 1
        at = self._ends[-1][1] if self._ends and self._ends[-1][0] == last else 0
        try:
            if last < 0 or (at and at + len(data) > self._segment_bytes):
                file = self._open(self._path(batch.base_offset))
                self.close()
                self._file = file
                self._segments.append(batch.base_offset)
                last, at = last + 1, 0
            elif self._file is None:
                self._file = self._open(self._path(self._segments[-1]))
            try:
                done = self._file.write(data)
                while done < len(data):  # a full disk takes a part, and only then refuses
                    done += self._file.write(data[done:])
            except OSError:
                with suppress(OSError):  # otherwise the next start cuts it off
                    self._file.truncate(at)
                raise
        except OSError as error:
            raise self._failed(error) from None
        super()._append(batch)
        self._ends.append((last, at + len(data)))

    def _open(self, path: Path) -> BinaryIO:
        file = path.open("ab", buffering=0)
        os.fchmod(file.fileno(), 0o600)
        return file

    def _path(self, base_offset: int) -> Path:
        return self._folder / f"{base_offset:020d}.log"

    def _failed(self, error: OSError) -> KafkaError:
        return self._directory.failure(self._folder, error)

    def truncate_to(self, offset: int) -> bool:
        if not super().truncate_to(offset):
            return False
        if self.batches and self.batches[-1].next_offset > offset:
            raise AssertionError("a stored batch cannot be cut")
        del self._ends[len(self.batches) :]
        self.close()
        segment, end = self._ends[-1] if self._ends else (0, 0)
        last = self.batches[-1].next_offset if self.batches else self.log_start_offset
        gaps = {at: base for at, base in self._gaps.items() if at < last}
        if last < offset:
            gaps[last] = offset
        try:
            if gaps != self._gaps:  # before the records go: with a gap too many nothing is lost
                self._gaps = gaps
                _write_lines(self._folder / GAPS, [f"{at} {base}" for at, base in gaps.items()])
            for base in reversed(self._segments[segment + 1 :]):  # a kill in between leaves no hole
                self._path(base).unlink()
            del self._segments[segment + 1 :]
            if self._segments:
                os.truncate(self._path(self._segments[segment]), end)
        except OSError as error:
            raise self._failed(error) from None
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        super().truncate_fully_and_start_at(offset)
        self.epochs = StoredEpochs(self._directory, self._folder / LEADER_EPOCHS)
        self.close()
        try:
            for base in self._segments:
                self._path(base).unlink()
            self._ends.clear()
            self._segments = [offset]
            self._path(offset).touch()
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """The file that is written to is let go."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _keep(segment: Path, data: bytes) -> str:
    """Beside the segment what is to be cut off it, before it is; the file's name. OSError."""
    path = segment.with_name(segment.name + TORN)
    number = 1
    while path.exists():
        number += 1
        path = segment.with_name(f"{segment.name}{TORN}-{number}")
    with path.open("xb", buffering=0) as file:
        os.fchmod(file.fileno(), 0o600)
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    return path.name


def _read_lines(path: Path, form: re.Pattern[str]) -> list[list[str]]:
    """The entries of a checkpoint file: a version, how many, and one per line; none where there is
    no file, or an empty one. BadCheckpoint (CheckpointFile.scala@2.6.3 read)."""
    if not path.exists():
        return []
    lines = path.read_text(errors="replace").splitlines()
    if not lines:
        return []
    if lines[0] != "0":
        raise BadCheckpoint(f"{path}: version {lines[0][:40]!r}; 0 is known")
    for number, line in enumerate(lines[2:], 3):
        if not form.fullmatch(line):
            raise BadCheckpoint(f"{path}: line {number}: {line[:40]!r} is not an entry")
    if lines[1:2] != [str(len(lines) - 2)]:
        raise BadCheckpoint(f"{path}: line 2: there are {max(0, len(lines) - 2)} entries")
    return [line.split() for line in lines[2:]]


def _write_lines(path: Path, lines: list[str]) -> None:
    _replace(path, "\n".join(["0", str(len(lines)), *lines]) + "\n")


def _replace(path: Path, text: str) -> None:
    """Written aside and renamed (CheckpointFile.scala write)."""
    aside = path.with_name(path.name + ".tmp")
    with aside.open("w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())  # else a renamed file may be empty after the machine went down
    aside.replace(path)
