"""The port between the storage code and a file system, and its implementation by the operating
system.

`StoredLog`, the checkpoints and `meta.properties` access files only through `Files`, so the same
code runs on `ModelledDisk` in virtual time. Every call may raise OSError, and a write may accept
fewer bytes than it was given. Nothing here knows the content of a file.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Literal, Protocol

Mode = Literal["append", "replace", "new"]
"""`append`: made if it is missing; `replace`: empty at first; `new`: an error if it exists."""

_FLAGS: dict[Mode, int] = {"append": 0, "replace": os.O_TRUNC, "new": os.O_EXCL}
_TO_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class OpenFile(Protocol):
    """A file that is appended to. Bytes are on disk after `fsync`."""

    def write(self, data: bytes | memoryview) -> int:
        """The number of accepted bytes: possibly fewer than given, never zero."""
        ...

    def truncate(self, size: int) -> None: ...

    def fsync(self) -> None: ...

    def close(self) -> None: ...


class Lock(Protocol):
    """A file that one process holds."""

    def close(self) -> None: ...


class Files(Protocol):
    """A file system. Created, renamed and removed entries are on disk after `fsync_directory`."""

    def open(self, path: Path, mode: Mode) -> OpenFile:
        """A new file is readable only by its owner."""
        ...

    def read(self, path: Path) -> bytes:
        """The whole file."""
        ...

    def list(self, folder: Path) -> list[str]:
        """Names in a directory, sorted."""
        ...

    def exists(self, path: Path) -> bool: ...

    def is_directory(self, path: Path) -> bool: ...

    def make_directory(self, path: Path) -> None:
        """With its parents; does nothing if it exists."""
        ...

    def rename(self, path: Path, to: Path) -> None:
        """Within one directory; an existing file at the new name is replaced."""
        ...

    def truncate(self, path: Path, size: int) -> None: ...

    def unlink(self, path: Path) -> None: ...

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        ...

    def fsync_directory(self, path: Path) -> None: ...

    def lock(self, path: Path) -> Lock:
        """Take the lock. BlockingIOError: another process holds it."""
        ...


class _Descriptor:
    """An open file of the operating system."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, data: bytes | memoryview) -> int:
        return os.write(self._number, data)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._number, size)

    def fsync(self) -> None:
        os.fsync(self._number)

    def close(self) -> None:
        os.close(self._number)


class OperatingSystemFiles:
    """The machine's own file system."""

    def open(self, path: Path, mode: Mode) -> OpenFile:
        number = os.open(path, _TO_APPEND | _FLAGS[mode], 0o600)
        os.fchmod(number, 0o600)
        return _Descriptor(number)

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def list(self, folder: Path) -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    def exists(self, path: Path) -> bool:
        return path.exists()

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def rename(self, path: Path, to: Path) -> None:
        path.replace(to)

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def remove_directory(self, path: Path) -> None:
        path.rmdir()

    def fsync_directory(self, path: Path) -> None:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def lock(self, path: Path) -> Lock:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            raise
        return _Descriptor(number)
