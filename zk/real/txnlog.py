"""Reads a ZooKeeper server's own transaction log: the applied transactions, with their sessions.

Owns the files `log.<zxid>` of `version-2` (FileTxnLog.java, 3.4 to 3.9), down to their checksums.
It reads files, also those of a running server. A torn tail (the server was killed, or is writing)
ends the log without an error; any other damage raises `Malformed`.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from zk.ops import Transaction
from zk.real import jute
from zk.real.jute import Malformed, OpCode, Reader

_MAGIC = b"ZKLG"
_VERSION = 2
_FILE_HEADER = 16  # magic, version, database id
_END_OF_RECORD = 0x42
_RECORD = struct.Struct("!qi")  # checksum, length
_HEADER = struct.Struct("!qiqqi")  # session, cxid, zxid, time, type


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the log: `at_ms` is the server's wall clock when it received the request, `cxid`
    the client's request number."""

    at_ms: int
    cxid: int
    transaction: Transaction


def read_log(folder: Path) -> Iterator[Entry]:
    """All entries of all log files in a server's `version-2` folder, by zxid. Raises Malformed."""
    for path in sorted(folder.glob("log.*"), key=_first_zxid):
        yield from read_file(path)


def read_file(path: Path) -> Iterator[Entry]:
    """The entries of one log file. Raises Malformed, naming file and position."""
    data = path.read_bytes()
    if len(data) < _FILE_HEADER:
        return  # the server has just created it
    if data[:4] != _MAGIC or int.from_bytes(data[4:8], "big") != _VERSION:
        raise Malformed(f"{path}: not a ZooKeeper transaction log of version {_VERSION}")
    at = _FILE_HEADER
    while record := _record(data, at):
        try:
            yield decode_entry(record)
        except Malformed as error:
            raise Malformed(f"{path}: at byte {at}: {error}") from error
        at += _RECORD.size + len(record) + 1


def within(entries: Iterable[Entry], chroot: str) -> Iterator[Entry]:
    """The entries of a chroot, from its creation on, with paths as for its clients."""
    begun = False
    for entry in entries:
        every = entry.transaction.ops or (entry.transaction,)
        paths = [one.path for one in every if one.path]
        begun = begun or chroot in paths
        inside = [path for path in paths if path.startswith(chroot + "/")]
        if begun and len(inside) == len(paths):
            yield msgspec.structs.replace(entry, transaction=_inside(entry.transaction, chroot))


def _inside(transaction: Transaction, chroot: str) -> Transaction:
    return msgspec.structs.replace(
        transaction,
        path=jute.inside(chroot, transaction.path),
        ops=tuple(_inside(op, chroot) for op in transaction.ops),
        removed=tuple(jute.inside(chroot, path) for path in transaction.removed),
    )


class LogTail:
    """Follows the log of a running server: each `read` returns the new entries. Every acknowledged
    write is in the log. Cheap enough to call after every response: the file is mapped (the server
    preallocates 64 MB of zeros), so that checking it needs no system call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._behind: list[Path] = []
        self._path: Path | None = None
        self._log: mmap.mmap | bytes = b""
        self._at = _FILE_HEADER

    def read_up_to(self, zxid: int) -> Iterator[Entry]:
        """The new entries, including this one if it exists. It is usually in the mapped file;
        only otherwise the folder is scanned. Raises Malformed."""
        last = 0
        for entry in self._mapped():
            last = entry.transaction.zxid
            yield entry
        if last < zxid:
            yield from self.read()

    def read(self) -> Iterator[Entry]:
        """All new entries. Raises Malformed."""
        try:
            with os.scandir(self._folder) as folder:
                names = [entry.name for entry in folder]
        except FileNotFoundError:
            names = []  # the server has not created it yet
        # A scan is cheaper than sorting the files, and also shows whether there is a new one.
        if names != self._names:
            self._names = names
            files = sorted(self._folder.glob("log.*"), key=_first_zxid)
            self._behind = files[files.index(self._path) + 1 if self._path in files else 0 :]
        yield from self._read_appended()
        while self._behind:
            self._path, self._at = self._behind.pop(0), _FILE_HEADER
            yield from self._read_appended()

    def close(self) -> None:
        """Close the file; nothing can be read after this."""
        if isinstance(self._log, mmap.mmap):
            self._log.close()
        self._log, self._path = b"", None

    def _read_appended(self) -> Iterator[Entry]:
        """The new entries of the current file, as long as it is now."""
        if self._path is not None:
            path = self._path
            self.close()
            self._path = path
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > 0:
                    self._log = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            yield from self._mapped()

    def _mapped(self) -> Iterator[Entry]:
        while record := _record(self._log, self._at):
            self._at += _RECORD.size + len(record) + 1
            yield decode_entry(record)


def _first_zxid(path: Path) -> int:
    try:
        return int(path.suffix[1:], 16)
    except ValueError as error:
        raise Malformed(f"{path}: no zxid in its name") from error


def _record(data: bytes | mmap.mmap, at: int) -> bytes | None:
    """The record at this position; None at the padding, or for an incomplete record."""
    if at + _RECORD.size > len(data):
        return None
    checksum, length = _RECORD.unpack_from(data, at)
    start = at + _RECORD.size
    if length <= 0 or start + length >= len(data):
        return None
    record = data[start : start + length]
    if data[start + length] != _END_OF_RECORD or zlib.adler32(record) != checksum:
        return None
    return record


def decode_entry(record: bytes) -> Entry:
    """Header and transaction; a digest after it (from 3.6 on) is ignored. Raises Malformed."""
    reader = Reader(record)
    session_id, cxid, zxid, at_ms, kind = reader.unpack(_HEADER)
    return Entry(at_ms, cxid, _transaction(kind, reader, zxid, session_id))


def _transaction(kind: int, reader: Reader, zxid: int, session_id: int) -> Transaction:
    match kind:
        case OpCode.CREATE | OpCode.CREATE2:
            path, data = reader.string(), reader.buffer()
            reader.skip_acls()
            ephemeral = reader.boolean()
            return Transaction(zxid, session_id, "create", path, data, ephemeral=ephemeral)
        case OpCode.CREATE_CONTAINER | OpCode.CREATE_TTL:  # not used by Kafka
            return Transaction(zxid, session_id, "create", reader.string(), reader.buffer())
        case OpCode.DELETE | OpCode.DELETE_CONTAINER:
            return Transaction(zxid, session_id, "delete", reader.string())
        case OpCode.SET_DATA:
            path, data, version = reader.string(), reader.buffer(), reader.int32()
            return Transaction(zxid, session_id, "setData", path, data, version)
        case OpCode.SET_ACL:
            path = reader.string()
            reader.skip_acls()
            return Transaction(zxid, session_id, "setACL", path, version=reader.int32())
        case OpCode.CHECK:
            path, version = reader.string(), reader.int32()
            return Transaction(zxid, session_id, "check", path, version=version)
        case OpCode.MULTI:
            parts = reader.vector(lambda: (reader.int32(), reader.buffer()))
            if any(part == OpCode.MULTI for part, _ in parts):
                raise Malformed("a multi in a multi")
            ops = (
                _transaction(part, Reader(body or b""), zxid, session_id) for part, body in parts
            )
            return Transaction(zxid, session_id, "multi", ops=tuple(ops))
        case OpCode.CREATE_SESSION:
            return Transaction(zxid, session_id, "createSession", timeout_ms=reader.int32())
        case OpCode.CLOSE_SESSION:
            # From 3.6 on the body lists the ephemeral znodes deleted with the session; before that
            # there is no body.
            removed = reader.vector(reader.string) if reader.left >= 4 else ()
            return Transaction(zxid, session_id, "closeSession", removed=removed)
        case OpCode.ERROR:
            return Transaction(zxid, session_id, "error", code=reader.int32())
        case _:
            raise Malformed(f"transaction of unknown type {kind}")
