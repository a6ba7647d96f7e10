"""A disk in memory with a page cache and its faults: the file system of virtual time.

A file has its pages twice, as processes see them and as they are on disk; a directory has its
entries twice. `fsync` copies the first to the second, and so does time (`WRITEBACK_US`). A crash of
the machine loses what is only in the cache: each page is old, new or torn at any byte, independent
of the others; of a directory's changes a prefix is on disk. Faults are declared (`Fault`), space is
limited, bits flip, sectors become unreadable. Without faults the disk behaves like the operating
system (a property test compares the two). After FoundationDB's AsyncFileNonDurable, SQLite's test
VFS and TigerBeetle's storage faults.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from emulator.worlds.storage.files import Mode

PAGE, SECTOR = 4096, 512
WRITEBACK_US = 30_000_000
"""The kernel writes by itself what is older (Linux: vm.dirty_expire_centisecs 3000)."""

Draw = Callable[[int], int]
"""A number below another."""


@dataclass
class Fault:
    """Calls of one kind (empty: any) below a directory fail; without `code`, writes are short. The
    first `skip` calls succeed, then `count` calls fail (0: all). `spent`: no call fails any more.
    """

    call: str = ""
    code: int = errno.EIO
    skip: int = 0
    count: int = 1
    under: Path = Path("/")
    spent: bool = False

    def takes(self, call: str, path: Path) -> bool:
        """Whether this call fails; each call is counted."""
        if self.spent or self.call not in ("", call) or not path.is_relative_to(self.under):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.spent = self.count == 1
        self.count -= self.count > 0
        return True


@dataclass
class _File:
    cached: bytearray = field(default_factory=bytearray)
    stored: bytearray = field(default_factory=bytearray)
    dirty: dict[int, int] = field(default_factory=dict)
    """Pages that differ, and since when."""
    resized_us: int | None = None
    """Since when its length is not on the disk."""
    bad_sectors: set[int] = field(default_factory=set)

    def write_back(self, pages: list[int]) -> None:
        for page in pages:
            start = page * PAGE
            end = min(start + PAGE, len(self.cached))
            if end > start:
                _put(self.stored, start, bytes(self.cached[start:end]))
            self.dirty.pop(page, None)

    def resize(self) -> None:
        """The new length is on disk."""
        _fit(self.stored, len(self.cached))
        self.resized_us = None


@dataclass
class _Change:
    """Changes of a directory's entries that belong together; None removes an entry."""

    entries: dict[str, _Node | None]
    at_us: int


@dataclass
class _Directory:
    cached: dict[str, _Node] = field(default_factory=dict)
    stored: dict[str, _Node] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)

    def change(self, at_us: int, **entries: _Node | None) -> None:
        _apply(self.cached, entries)
        self.changes.append(_Change(entries, at_us))

    def write_back(self, changes: int) -> None:
        """Write back the oldest `changes` changes."""
        for change in self.changes[:changes]:
            _apply(self.stored, change.entries)
        del self.changes[:changes]


_Node = _File | _Directory


class _Handle:
    """A file of the model, opened by a process."""

    def __init__(self, disk: ModelledDisk, path: Path, file: _File) -> None:
        self._disk, self._path, self._file = disk, path, file

    def write(self, data: bytes | memoryview) -> int:
        size = self._disk.take(self._path, len(data))
        self._disk.append(self._file, bytes(data[:size]))
        return size

    def truncate(self, size: int) -> None:
        self._disk.call("ftruncate", self._path)
        self._disk.cut(self._file, size)

    def fsync(self) -> None:
        self._disk.fsync(self._path, self._file)

    def close(self) -> None:
        """Nothing is written, and nothing fails."""


class _Held:
    def __init__(self, disk: ModelledDisk, path: Path) -> None:
        self._disk, self._path = disk, path

    def close(self) -> None:
        self._disk.locked.discard(self._path)


class ModelledDisk:
    """One file system (`emulator.worlds.storage.files.Files`). `draw` makes random choices;
    `now_us` is the kernel's time."""

    def __init__(self, draw: Draw, now_us: Callable[[], int] = lambda: 0) -> None:
        self._draw, self._now_us = draw, now_us
        self._root = _Directory()
        self.faults: list[Fault] = []
        self.free_bytes: int | None = None
        """None: there is always space."""
        self.calls = 0
        self.locked: set[Path] = set()

    # -- emulator.worlds.storage.files.Files -------------------------------------------------------

    def open(self, path: Path, mode: Mode) -> _Handle:
        self.call("open", path)
        folder = self._folder(path)
        node = folder.cached.get(path.name)
        if node is None:
            node = _File()
            folder.change(self._now_us(), **{path.name: node})
        elif mode == "new":
            _refuse(errno.EEXIST, path)
        elif isinstance(node, _Directory):
            _refuse(errno.EISDIR, path)
        elif mode == "replace":
            self.cut(node, 0)
        return _Handle(self, path, node)

    def read(self, path: Path) -> bytes:
        self.call("read", path)
        file = self._file(path)
        if file.bad_sectors:
            _refuse(errno.EIO, path)
        return bytes(file.cached)

    def list(self, folder: Path) -> list[str]:
        self.call("list", folder)
        return sorted(self._directory(folder).cached)

    def exists(self, path: Path) -> bool:
        return self._node(path) is not None

    def is_directory(self, path: Path) -> bool:
        return isinstance(self._node(path), _Directory)

    def make_directory(self, path: Path) -> None:
        self.call("mkdir", path)
        parents = [*reversed(path.parents), path][1:]
        for one in parents:
            folder = self._folder(one)
            node = folder.cached.get(one.name)
            if node is None:
                folder.change(self._now_us(), **{one.name: _Directory()})
            elif not isinstance(node, _Directory):
                _refuse(errno.EEXIST if one == path else errno.ENOTDIR, one)

    def rename(self, path: Path, to: Path) -> None:
        assert path.parent == to.parent, f"{path} is renamed to another directory"
        self.call("rename", path)
        folder = self._folder(path)
        node, other = folder.cached.get(path.name), folder.cached.get(to.name)
        if node is None:
            _refuse(errno.ENOENT, path)
        if other is node:
            return
        if isinstance(other, _Directory):
            if not isinstance(node, _Directory):
                _refuse(errno.EISDIR, path)
            if other.cached:
                _refuse(errno.ENOTEMPTY, path)
        elif other is not None and isinstance(node, _Directory):
            _refuse(errno.ENOTDIR, path)
        if isinstance(other, _File):
            self._release(len(other.cached))
        folder.change(self._now_us(), **{path.name: None, to.name: node})

    def truncate(self, path: Path, size: int) -> None:
        self.call("truncate", path)
        self.cut(self._file(path), size)

    def unlink(self, path: Path) -> None:
        self.call("unlink", path)
        file = self._file(path)
        self._release(len(file.cached))
        self._folder(path).change(self._now_us(), **{path.name: None})

    def remove_directory(self, path: Path) -> None:
        self.call("rmdir", path)
        if self._directory(path).cached:
            _refuse(errno.ENOTEMPTY, path)
        self._folder(path).change(self._now_us(), **{path.name: None})

    def fsync_directory(self, path: Path) -> None:
        self.call("fsync_directory", path)
        directory = self._directory(path)
        directory.write_back(len(directory.changes))

    def lock(self, path: Path) -> _Held:
        self.open(path, "append").close()
        if path in self.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        self.locked.add(path)
        return _Held(self, path)

    # -- what open files need ----------------------------------------------------------------------

    def call(self, name: str, path: Path) -> None:
        """A call of this kind starts. Raises OSError."""
        self.calls += 1
        for fault in self.faults:
            if fault.code and fault.takes(name, path):
                _refuse(fault.code, path)

    def take(self, path: Path, size: int) -> int:
        """How many of a write's bytes are accepted. Raises OSError."""
        self.call("write", path)
        if size > 1 and any(not f.code and f.takes("write", path) for f in self.faults):
            size = 1 + self._draw(size - 1)
        if self.free_bytes is not None:
            if size and not self.free_bytes:
                _refuse(errno.ENOSPC, path)
            size = min(size, self.free_bytes)
            self.free_bytes -= size
        return size

    def append(self, file: _File, data: bytes) -> None:
        """Append these bytes in the cache."""
        start = len(file.cached)
        self._touch(file, start, start + len(data))
        file.cached += data

    def cut(self, file: _File, size: int) -> None:
        """Truncate the file in the cache."""
        if size == len(file.cached):
            return
        self._release(len(file.cached) - size)
        self._touch(file, min(size, len(file.cached)), max(size, len(file.cached)))
        _fit(file.cached, size)
        file.bad_sectors = {sector for sector in file.bad_sectors if sector * SECTOR < size}

    def fsync(self, path: Path, file: _File) -> None:
        """The file is on disk, but not the entry that names it. OSError: its pages are not, and no
        later call writes them, because the kernel has marked them clean."""
        try:
            self.call("fsync", path)
        except OSError:
            file.dirty.clear()
            raise
        file.write_back(list(file.dirty))
        file.resize()

    def _touch(self, file: _File, start: int, end: int) -> None:
        """These bytes and the length are about to change in the cache. Old enough content is on
        disk; the new content is not."""
        now_us = self._now_us()
        for page in range(start // PAGE, -(-end // PAGE)):
            if now_us - file.dirty.setdefault(page, now_us) >= WRITEBACK_US:
                file.write_back([page])
                file.dirty[page] = now_us
        if file.resized_us is not None and now_us - file.resized_us >= WRITEBACK_US:
            file.resize()
        if file.resized_us is None:
            file.resized_us = now_us

    def _release(self, size: int) -> None:
        if self.free_bytes is not None:
            self.free_bytes = max(0, self.free_bytes + size)

    # -- what becomes of it ------------------------------------------------------------------------

    def end_process(self) -> None:
        """The process was killed (SIGKILL); its writes stay in the cache."""
        self.locked.clear()

    def crash(self) -> None:
        """The machine crashes and its cache is lost. One crash in four loses everything
        possible."""
        self.end_process()
        everything = self._draw(4) == 0
        old_us = self._now_us() - WRITEBACK_US
        for directory in self._directories(self._root):
            old = sum(change.at_us <= old_us for change in directory.changes)
            more = 0 if everything else self._draw(len(directory.changes) - old + 1)
            directory.write_back(old + more)
            directory.changes.clear()
            directory.cached = dict(directory.stored)
            for node in directory.cached.values():
                if isinstance(node, _File):
                    self._crash_file(node, old_us, everything=everything)

    def _crash_file(self, file: _File, old_us: int, *, everything: bool) -> None:
        file.write_back([page for page, at_us in file.dirty.items() if at_us <= old_us])
        size = len(file.cached)
        if file.resized_us is not None and file.resized_us > old_us:
            # The length on disk is the new one, the old one, or one in between.
            low, high = sorted((len(file.stored), size))
            ends = (len(file.stored), size, low + self._draw(high - low + 1))
            size = len(file.stored) if everything else ends[self._draw(3)]
        for page in [] if everything else sorted(file.dirty):
            start = page * PAGE
            new = bytes(file.cached[start : start + PAGE])
            torn_at = (0, len(new), self._draw(len(new) + 1))[self._draw(3)]
            _put(file.stored, start, new[:torn_at])
        # If the length is on disk and a page is not, the page has zeros.
        _fit(file.stored, size)
        file.cached = bytearray(file.stored)
        file.dirty.clear()
        file.resized_us = None

    def wipe(self) -> None:
        """A new, empty disk without faults."""
        self.end_process()
        self._root = _Directory()
        self.mend()

    def flip_bit(self, path: Path) -> None:
        """Flip one bit of a file, on disk and in the cache."""
        file = self._file(path)
        bit = self._draw(8 * len(file.cached))
        for data in (file.cached, file.stored):
            if bit // 8 < len(data):
                data[bit // 8] ^= 1 << bit % 8

    def break_sector(self, path: Path) -> None:
        """Make one sector of a file unreadable until it is written again."""
        file = self._file(path)
        file.bad_sectors.add(self._draw(len(file.cached)) // SECTOR)

    def mend(self) -> None:
        """No call fails any more, there is space, every sector is readable."""
        self.faults.clear()
        self.free_bytes = None
        for directory in self._directories(self._root):
            for node in directory.cached.values():
                if isinstance(node, _File):
                    node.bad_sectors.clear()

    def files(self) -> Iterator[tuple[Path, int]]:
        """All files with their sizes."""
        yield from self._files(Path("/"), self._root)

    def _files(self, path: Path, directory: _Directory) -> Iterator[tuple[Path, int]]:
        for name, node in sorted(directory.cached.items()):
            if isinstance(node, _File):
                yield path / name, len(node.cached)
            else:
                yield from self._files(path / name, node)

    # -- the tree ----------------------------------------------------------------------------------

    def _directories(self, top: _Directory) -> Iterator[_Directory]:
        """From the top down: entries below a lost directory are lost too."""
        yield top
        for _, node in sorted(top.cached.items()):
            if isinstance(node, _Directory):
                yield from self._directories(node)

    def _node(self, path: Path) -> _Node | None:
        node: _Node | None = self._root
        for name in path.parts[1:]:
            node = node.cached.get(name) if isinstance(node, _Directory) else None
        return node

    def _folder(self, path: Path) -> _Directory:
        """The directory with the path's entry. Raises OSError."""
        return self._directory(path.parent)

    def _directory(self, path: Path) -> _Directory:
        node = self._node(path)
        if not isinstance(node, _Directory):
            self._missing(path)
        return node

    def _file(self, path: Path) -> _File:
        node = self._node(path)
        if isinstance(node, _Directory):
            _refuse(errno.EISDIR, path)
        if node is None:
            self._missing(path)
        return node

    def _missing(self, path: Path) -> NoReturn:
        """The error if a parent is a file, or does not exist."""
        above = any(isinstance(self._node(one), _File) for one in (path, *path.parents))
        _refuse(errno.ENOTDIR if above else errno.ENOENT, path)


def _refuse(code: int, path: Path) -> NoReturn:
    raise OSError(code, os.strerror(code), str(path))


def _put(data: bytearray, at: int, new: bytes) -> None:
    if at > len(data):
        data.extend(bytes(at - len(data)))
    data[at : at + len(new)] = new


def _fit(data: bytearray, size: int) -> None:
    del data[size:]
    data.extend(bytes(size - len(data)))


def _apply(entries: dict[str, _Node], changes: dict[str, _Node | None]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node
