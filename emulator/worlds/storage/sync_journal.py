"""A broker process whose machine can crash: what it synced survives, and nothing else.

The operating system keeps what a killed process has written. So the process notes how much of each
file it has synced, and the process that runs it cuts the segments there. A machine that crashes may
lose so much, and a test wants all of it; pages that survive in other orders are `ModelledDisk`'s.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from emulator.worlds.storage.files import Mode, OpenFile, OperatingSystemFiles
from emulator.worlds.storage.stored_logs import SEGMENT


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """`synced`: the file has so many bytes on the disk; otherwise that many at most."""

    path: str
    size: int
    synced: bool


class JournalledFiles(OperatingSystemFiles):
    """The machine's files, and a journal of what was synced."""

    def __init__(self, journal: Path) -> None:
        """A journal that is there is continued."""
        self._journal = journal
        self._encode = msgspec.json.Encoder().encode

    def open(self, path: Path, mode: Mode) -> OpenFile:
        return _JournalledFile(super().open(path, mode), path, self)

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self.note(path, size, synced=False)

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.note(path, 0, synced=False)  # a segment of the same name may come after it

    def note(self, path: Path, size: int, *, synced: bool) -> None:
        """One write: a kill takes all of the line or nothing."""
        with self._journal.open("ab", buffering=0) as journal:
            journal.write(self._encode(_Note(str(path), size, synced)) + b"\n")


class _JournalledFile:
    """An open file of them."""

    def __init__(self, file: OpenFile, path: Path, files: JournalledFiles) -> None:
        self._file, self._path, self._files = file, path, files
        self.write, self.close = file.write, file.close

    def truncate(self, size: int) -> None:
        self._file.truncate(size)
        self._files.note(self._path, size, synced=False)

    def fsync(self) -> None:
        self._file.fsync()
        self._files.note(self._path, self._path.stat().st_size, synced=True)


def lose_unsynced(folder: Path, journal: Path) -> None:
    """The machine of a dead process crashes: its segments end where it had synced them."""
    synced: dict[Path, int] = {}
    decoder = msgspec.json.Decoder(_Note)
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        note = decoder.decode(line)
        path = Path(note.path)
        synced[path] = note.size if note.synced else min(note.size, synced.get(path, 0))
    for path in folder.rglob("*.log"):
        if SEGMENT.fullmatch(path.name) and path.stat().st_size > synced.get(path, 0):
            os.truncate(path, synced.get(path, 0))
