"""Logs in files with Kafka's layout: segments, leader epochs, high watermarks.

A process finds them again after a SIGKILL: every write goes to the file system before it has any
effect, and checkpoints are written to a temporary file and renamed. Bytes that do not continue a
log are truncated, reported, and saved beside it. A directory with an unreadable checkpoint has
failed. After a failed write the directory stays failed until the broker's next process; a process
without free descriptors has only failed to write. Files are readable only by their owner. Indexes
are not written. Sources: Log.scala, LogSegment.scala, CheckpointFile.scala,
OffsetCheckpointFile.scala, LeaderEpochCheckpointFile.scala, LogDirFailureChannel.scala@2.6.3.
"""

from __future__ import annotations

import errno
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from emulator.kafka.broker.log_dirs import Disk, LogDirectory
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.model.offset_log import (
    SEGMENT_BYTES,
    Batch,
    EpochCache,
    EpochEntry,
    OffsetLog,
    Segment,
)
from emulator.kafka.model.producer_state import BatchProducer
from emulator.kafka.profiles.guards.base import Guard
from emulator.kafka.profiles.guards.storage import DIRECTORIES_FLUSHED
from emulator.scenario.errors import UserError
from emulator.trace.values import TopicPartition
from emulator.worlds.storage.files import Files, Mode, OpenFile
from emulator.worlds.storage.log_recovery import offset_behind, recover
from emulator.worlds.wire.records import written

REPLICATION_OFFSETS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
GAPS = "truncation-gaps"
"""Not Kafka's: without it a gap looks like a damaged offset."""
META = "meta.properties"
LOCK = ".lock"
TORN = ".torn"
"""Behind a segment's name: what was cut off it."""
DELETED = "-delete"
"""Behind the name of a log that is being removed (Log.scala@2.6.3 DeleteDirSuffix)."""

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""The process has too many open files: that says nothing about a disk."""

_LOG = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,10})")
SEGMENT = re.compile(r"\d{20}\.log")
_OFFSET, _TWO_NUMBERS = re.compile(r"\S+ \d{1,10} \d{1,19}"), re.compile(r"\d{1,19} \d{1,19}")


class BadCheckpoint(Exception):
    """A checkpoint file that cannot be read; names the file and the fault (an IOException in
    Kafka)."""


def stored_disk(
    files: Files, folder: Path, config: KafkaConfig, guards: Set[Guard], log: Callable[[str], None]
) -> Disk:
    """The disk of a broker whose log directories are in `folder`. `log` receives reports of failed
    directories."""
    disk = Disk(config.log_directories)
    flushes = DIRECTORIES_FLUSHED in guards
    places = log_folders(folder, config)
    try:
        disk.directories = [
            StoredDirectory(files, n, at, log=log, flushes_directories=flushes)
            for n, at in enumerate(places)
        ]
    except OSError as error:
        raise UserError(f"--data {folder}: {error.strerror}") from None
    return disk


def log_folders(folder: Path, config: KafkaConfig) -> list[Path]:
    """The folder of each log directory: a single one uses the folder itself, several use
    `log-N`."""
    several = config.log_directories > 1
    return [folder / f"log-{n}" if several else folder for n in range(config.log_directories)]


@contextmanager
def claim(files: Files, folder: Path, broker: int) -> Iterator[None]:
    """A folder belongs to one broker (meta.properties) and, within this context, to this process
    (.lock; LogManager.scala@2.6.3 lockLogDirs). Raises UserError."""
    meta = folder / META
    try:
        files.make_directory(folder)
        lock = files.lock(folder / LOCK)
    except BlockingIOError:
        raise UserError(
            f"--data {folder}: a running broker uses it ({LOCK}); stop that broker, or choose"
            " another directory"
        ) from None
    except OSError as error:
        raise UserError(f"--data {folder}: {error.strerror}") from None
    try:
        try:
            if not files.exists(meta):
                text = f"version=0\nbroker.id={broker}\n"
                files.rename(_write_aside(files, meta, text), meta)
            _check_meta(files, meta, broker)
        except OSError as error:
            raise UserError(f"--data {folder}: {error.strerror}") from None
        yield
    finally:
        lock.close()


def _check_meta(files: Files, meta: Path, broker: int) -> None:
    """Raises UserError if it is another broker's, or damaged."""
    lines = files.read(meta).decode(errors="replace").splitlines()
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
    """One of `log.dirs` in a folder. `flushes_directories`: created and renamed entries are on disk
    when the call returns (the guard with that name)."""

    def __init__(
        self,
        files: Files,
        number: int,
        folder: Path,
        segment_bytes: int = SEGMENT_BYTES,
        log: Callable[[str], None] = lambda _: None,
        *,
        flushes_directories: bool = True,
    ) -> None:
        super().__init__(number)
        self.files, self.folder, self._segment_bytes, self._log = files, folder, segment_bytes, log
        self.flushes_directories = flushes_directories
        self.why = ""
        try:
            files.make_directory(folder)
            for name in files.list(folder):
                place = folder / name
                if name.endswith(DELETED):
                    self._remove(place)  # what the last process had not yet removed
                    continue
                match = _LOG.fullmatch(name)
                if match is not None and files.is_directory(place):
                    partition = TopicPartition(match["topic"], int(match["partition"]))
                    self.logs[partition] = StoredLog(self, place, segment_bytes, log)
            self.checkpointed_high_watermarks = self._read_offsets(REPLICATION_OFFSETS)
            self.checkpointed_log_starts = self._read_offsets(LOG_START_OFFSETS)
        except (BadCheckpoint, OSError) as error:  # LogManager.scala@2.6.3 loadLogs
            if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
                raise  # another process may have them
            self.fail(str(error))
        except KafkaError:
            pass  # an epoch checkpoint could not be written, and this has failed
        if self.failed:  # an offline directory has no logs, also not those that could be read
            self.close()
            self.logs.clear()

    def fail(self, why: str) -> KafkaError:
        """Mark the directory as failed for the rest of the process, even if there is space again,
        and report it once (LogDirFailureChannel.scala@2.6.3 maybeAddOfflineLogDir). Returns the
        exception to raise.
        """
        if not self.failed:
            self.failed, self.why = True, why
            follows = "nothing in it is served until the broker starts again"
            self._log(f"log directory {self.folder} is offline: {why}; {follows}")
            self.on_failure(self)
        return KafkaError(Errors.KAFKA_STORAGE_ERROR, why)

    def failure(self, path: Path, error: OSError) -> KafkaError:
        """The exception to raise after a failed write; the directory counts as failed from now on
        (Log.scala@2.6.3 maybeHandleIOException). Kafka also fails the directory if descriptors are
        exhausted; here it does not fail, because its files are unchanged and the write can be
        retried.
        """
        why = f"{path}: {error.strerror}"
        if error.errno in NO_DESCRIPTORS:
            self._log(f"{why}: not written (ulimit -n)")
            return KafkaError(Errors.KAFKA_STORAGE_ERROR, why)
        return self.fail(why)

    def _place(self, partition: TopicPartition) -> Path:
        return self.folder / f"{partition.topic}-{partition.partition}"

    def open_log(self, partition: TopicPartition) -> OffsetLog:
        """See LogDirectory. KafkaError if it cannot be created: the directory has failed."""
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
        """See LogDirectory. Renamed first: what remains after a failure or a crash is then not a
        log (Log.scala@2.6.3 renameDir, LogManager.scala asyncDelete)."""
        log = self.logs.get(partition)
        if isinstance(log, StoredLog):
            log.close()
        has_log_start = partition in self.checkpointed_log_starts
        super().remove_log(partition)
        place = self._place(partition)
        try:
            if self.files.exists(place):
                number = 0
                while self.files.exists(gone := self._renamed(place, number)):
                    number += 1
                self.rename(place, gone)
                self._remove(gone)
        except OSError as error:
            self.failure(place, error)  # who asked for it is not told, as in Kafka
            return
        self.checkpoint(self.checkpointed_high_watermarks)
        if has_log_start:
            self.checkpoint_log_starts(self.checkpointed_log_starts)

    @staticmethod
    def _renamed(place: Path, number: int) -> Path:
        return place.with_name(f"{place.name}.{number:032x}{DELETED}")

    def _remove(self, place: Path) -> None:
        for name in self.files.list(place):
            self.files.unlink(place / name)
        self.files.remove_directory(place)

    def rename(self, path: Path, to: Path) -> None:
        """Raises OSError (Utils.java@3.3.2 atomicMoveWithFallback)."""
        self.files.rename(path, to)
        if self.flushes_directories:
            self.files.fsync_directory(to.parent)

    def close(self) -> None:
        """Close files; the logs can be opened again."""
        for log in self.logs.values():
            if isinstance(log, StoredLog):
                log.close()

    def checkpoint(self, marks: dict[TopicPartition, int]) -> None:
        """See LogDirectory."""
        if self._write_offsets(REPLICATION_OFFSETS, marks):
            super().checkpoint(marks)

    def checkpoint_log_starts(self, offsets: dict[TopicPartition, int]) -> None:
        """See LogDirectory."""
        if self._write_offsets(LOG_START_OFFSETS, offsets):
            super().checkpoint_log_starts(offsets)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        lines = _read_lines(self.files, self.folder / name, _OFFSET)
        return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in lines}

    def _write_offsets(self, name: str, offsets: dict[TopicPartition, int]) -> bool:
        """Whether the file is there; else nobody waits for it: there is a next one."""
        lines = [f"{p.topic} {p.partition} {offset}" for p, offset in offsets.items()]
        path = self.folder / name
        try:
            self.write_lines(path, lines)
        except OSError as error:
            self.failure(path, error)
            return False
        return True

    def write_lines(self, path: Path, lines: list[str]) -> None:
        """Write a checkpoint file through a temporary file and a rename. Raises OSError
        (CheckpointFile.scala write)."""
        aside = _write_aside(self.files, path, _checkpoint_text(lines))
        self.rename(aside, path)


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

    def truncate_from_start(self, start_offset: int) -> None:
        before = self.entries
        super().truncate_from_start(start_offset)
        if self.entries != before:
            self.write()

    def truncate_from_end(self, end_offset: int) -> None:
        before = len(self.entries)
        super().truncate_from_end(end_offset)
        if len(self.entries) != before:
            self.write()

    def clear(self) -> None:
        super().clear()
        self.write()

    def write(self) -> None:
        """Raises KafkaError: the directory has failed."""
        lines = [f"{e.epoch} {e.start_offset}" for e in self.entries]
        try:
            self._directory.write_lines(self._path, lines)
        except OSError as error:
            raise self._directory.failure(self._path, error) from None


class StoredLog(OffsetLog):
    """A log whose batches are also in segment files; reads come from memory."""

    __slots__ = (
        "_directory",
        "_ends",
        "_file",
        "_files",
        "_folder",
        "_gaps",
        "_unflushed",
    )

    def __init__(
        self,
        directory: StoredDirectory,
        folder: Path,
        segment_bytes: int,
        log: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._directory, self._folder, self.segment_bytes = directory, folder, segment_bytes
        files = self._files = directory.files
        files.make_directory(folder)
        self._ends: list[tuple[int, int]] = []
        """Of each batch: the place of its segment in `segments`, and the offset in the file behind
        it."""
        self._unflushed: int | None = None
        """The first segment that was made since the last flush, by its base offset."""
        self._file: OpenFile | None = None
        lines = _read_lines(files, folder / LEADER_EPOCHS, _TWO_NUMBERS)
        in_file = [EpochEntry(int(e), int(o)) for e, o in lines]
        self.epochs = EpochCache(tuple(in_file))
        gaps = _read_lines(files, folder / GAPS, _TWO_NUMBERS)
        self._gaps = {int(end): int(base) for end, base in gaps}
        self._recover(log)
        self.epochs.truncate_from_end(self.log_end_offset)
        self.epochs = StoredEpochs(directory, folder / LEADER_EPOCHS, self.epochs.entries)
        if self.epochs.entries != in_file:
            self.epochs.write()
        self.recovery_point = self.log_end_offset

    def _recover(self, log: Callable[[str], None]) -> None:
        """Load what the last process wrote completely. A log has no gaps: everything after an
        incomplete batch is truncated, including all later segments."""
        files, folder = self._files, self._folder
        segments = [folder / name for name in files.list(folder) if SEGMENT.fullmatch(name)]
        if segments:
            self.log_start_offset = self.log_end_offset = int(segments[0].stem)
        where = problem = ""
        behind = cut = 0
        torn: list[str] = []
        contents = [files.read(path) for path in segments]
        for place, path in enumerate(segments):
            data, following = contents[place], b"".join(contents[place + 1 : place + 2])
            base, at = int(path.stem), 0
            if not problem and base in (end := self.log_end_offset, self._gaps.get(end)):
                self.segments.append(Segment(base))
                intact = recover(data, base, self.epochs.latest_epoch, self._gaps, following)
                for batch in intact.batches:
                    self._take(batch)
                    at += batch.size
                    self._ends.append((len(self.segments) - 1, at))
                problem = intact.problem
            elif not problem and data:
                problem = f"it begins at offset {base}, and the log ends at {self.log_end_offset}"
            if problem and not where:
                where = f"{path.name} at byte {at}"
                behind = self.log_end_offset
            if at < len(data):
                behind = max(behind, offset_behind(data, at, self.log_end_offset))
                cut += len(data) - at
                torn.append(_keep(files, path, data[at:]))
            if at or base in self._bases_of_segments:
                if at < len(data):
                    files.truncate(path, at)
            else:
                files.unlink(path)
        if not problem:
            return
        end, names = self.log_end_offset, ", ".join(torn)
        if behind > end:
            # An interrupted write is at the end of the file: batches after it existed before and
            # are lost.
            log(
                f"log {folder}: corruption in {where} (offset {end}): {problem};"
                f" {behind - end} records up to offset {behind - 1} are cut off with it, {cut}"
                f" bytes, kept in {names}"
            )
        else:
            log(
                f"log {folder}: {where} (offset {end}): {problem}; no whole record follows,"
                f" {cut} bytes are cut off, kept in {names}"
            )

    def _take(self, batch: Batch) -> None:
        """A batch that is already in its file. The epoch cache may lack its epoch: the file was
        renamed, and the machine crashed (LogSegment.scala@2.6.3 recover)."""
        latest = self.epochs.latest_epoch
        if latest is None or batch.leader_epoch > latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._hold(batch, batch.largest_ms())

    # -- writing -----------------------------------------------------------------------------------

    def append_as_leader(
        self,
        count: int,
        size: int,
        leader_epoch: int,
        data: bytes = b"",
        producer: BatchProducer | None = None,
        timestamp_ms: int = -1,
    ) -> Batch:
        """See OffsetLog. The batch's size is its size in the file."""
        batch = super().append_as_leader(count, size, leader_epoch, data, producer, timestamp_ms)
        if data:
            return batch
        stored = sum(
            one.size for one in self.batches[bisect_left(self._bases, batch.base_offset) :]
        )
        return msgspec.structs.replace(batch, size=stored)

    def _append(self, batch: Batch) -> None:
        """Append everything, or raise KafkaError and append nothing."""
        data = written(batch)
        if not batch.data:  # nobody gave contents: from now on it has those of the file
            batch = msgspec.structs.replace(batch, size=len(data), data=data)
        # Before the records, as in Log.scala@2.6.3 append: after they are in the file nothing can
        # fail.
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        last = len(self.segments) - 1
        at = self._ends[-1][1] if self._ends and self._ends[-1][0] == last else 0
        try:
            if self.must_roll(len(data), batch.largest_ms()):
                file = self._open(self._path(batch.base_offset))
                self.close()
                self._file = file
                if self._unflushed is None:
                    self._unflushed = batch.base_offset
                last, at = last + 1, 0
            elif self._file is None:
                self._file = self._open(self._path(self.segments[-1].base_offset))
            try:
                _write_whole(self._file, data)
            except OSError:
                with suppress(OSError):  # otherwise the next start cuts it off
                    self._file.truncate(at)
                raise
        except OSError as error:
            raise self._failed(error) from None
        self._ends.append((last, at + len(data)))
        super()._append(batch)

    def flush(self) -> None:
        """See OffsetLog. KafkaError: the directory has failed (Log.scala@2.6.3 flush)."""
        if self.recovery_point >= self.log_end_offset:
            return
        segments = self._bases_of_segments
        first = bisect_right(segments, self.recovery_point) - 1
        try:
            for base in segments[max(first, 0) : -1]:
                file = self._open(self._path(base))
                try:
                    file.fsync()
                finally:
                    file.close()
            if self._file is None:
                self._file = self._open(self._path(segments[-1]))
            self._file.fsync()
            if self._directory.flushes_directories and self._unflushed is not None:
                self._files.fsync_directory(self._folder)
        except OSError as error:
            raise self._failed(error) from None
        self._unflushed = None
        super().flush()

    @property
    def _bases_of_segments(self) -> list[int]:
        return [segment.base_offset for segment in self.segments]

    def _open(self, path: Path) -> OpenFile:
        return self._files.open(path, "append")

    def _path(self, base_offset: int) -> Path:
        return self._folder / f"{base_offset:020d}.log"

    def _failed(self, error: OSError) -> KafkaError:
        return self._directory.failure(self._folder, error)

    def truncate_to(self, offset: int) -> bool:
        if offset < self.log_start_offset:
            return super().truncate_to(offset)  # and begins again there, see below
        before = self._bases_of_segments
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
                lines = [f"{at} {base}" for at, base in gaps.items()]
                self._directory.write_lines(self._folder / GAPS, lines)
                # Not one of Kafka's files, so Kafka's rule of what is not flushed does not apply.
                self._files.fsync_directory(self._folder)
            for base in reversed(before[segment + 1 :]):  # a kill in between leaves no hole
                self._files.unlink(self._path(base))
            # A batch that reached beyond `offset` went as a whole, and may have been the only one.
            del self.segments[segment + 1 :]
            if before:
                self._files.truncate(self._path(before[segment]), end)
        except OSError as error:
            raise self._failed(error) from None
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        before = self._bases_of_segments
        super().truncate_fully_and_start_at(offset)
        self.epochs = StoredEpochs(self._directory, self._folder / LEADER_EPOCHS)
        self.close()
        try:
            for base in before:
                self._files.unlink(self._path(base))
            self._ends.clear()
            self._unflushed = offset
            self._open(self._path(offset)).close()
        except OSError as error:
            raise self._failed(error) from None

    def delete_segments(self, number: int) -> None:
        """See OffsetLog; KafkaError: the directory has failed."""
        before, batches = self._bases_of_segments, len(self.batches)
        super().delete_segments(number)
        gone = batches - len(self.batches)
        self._ends = [(segment - number, at) for segment, at in self._ends[gone:]]
        try:
            if number == len(before):
                self.close()
                # The log must not lose its end where everything in it goes.
                self._open(self._path(self.log_end_offset)).close()
                self._unflushed = self.log_end_offset
            for base in before[:number]:  # the oldest first: a kill in between leaves no hole
                self._files.unlink(self._path(base))
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Close the file that is being written."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _write_whole(file: OpenFile, data: bytes) -> None:
    """A full disk accepts a part first, and rejects the next call. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _keep(files: Files, segment: Path, data: bytes) -> str:
    """Save the bytes next to the segment before they are truncated; returns the file's name. Raises
    OSError."""
    path = segment.with_name(segment.name + TORN)
    number = 1
    while files.exists(path):
        number += 1
        path = segment.with_name(f"{segment.name}{TORN}-{number}")
    _write_file(files, path, "new", data)
    return path.name


def _read_lines(files: Files, path: Path, form: re.Pattern[str]) -> list[list[str]]:
    """The entries of a checkpoint file: a version, their number, and one per line; none if the file
    is missing or empty. Raises BadCheckpoint (CheckpointFile.scala@2.6.3 read)."""
    if not files.exists(path):
        return []
    lines = files.read(path).decode(errors="replace").splitlines()
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


def _checkpoint_text(lines: list[str]) -> str:
    return "\n".join(["0", str(len(lines)), *lines]) + "\n"


def _write_aside(files: Files, path: Path, text: str) -> Path:
    """The temporary file for `path`."""
    aside = path.with_name(path.name + ".tmp")
    _write_file(files, aside, "replace", text.encode())
    return aside


def _write_file(files: Files, path: Path, mode: Mode, data: bytes) -> None:
    """Write the file to disk, or raise OSError."""
    file = files.open(path, mode)
    try:
        _write_whole(file, data)
        file.fsync()  # else a renamed file may be empty after the machine went down
    finally:
        file.close()
