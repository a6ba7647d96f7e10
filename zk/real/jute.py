"""The part of ZooKeeper's wire format (jute) for Kafka's requests, the transaction log and
SetWatches.

Converts between bytes and `zk.ops`; knows no sockets, no files, no clock. Any deviation from the
format raises `Malformed`, never IndexError or struct.error, because callers read untrusted input.
Source: zookeeper.jute and ZooDefs.OpCode of ZooKeeper 3.5 to 3.9.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import TypeVar

import msgspec

from zk.errors import Code
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetChildrenNames,
    GetData,
    Multi,
    Op,
    OpResult,
    Reply,
    Request,
    SetData,
    Stat,
    Sync,
)

T = TypeVar("T")


class OpCode(IntEnum):
    """ZooDefs.OpCode."""

    ERROR = -1
    CLOSE_SESSION = -11
    CREATE_SESSION = -10
    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    SET_WATCHES2 = 105


XID_NOTIFICATION = -1
XID_PING = -2
XID_AUTH = -4
XID_SET_WATCHES = -8

_OTHER_NAMES = {
    OpCode.CLOSE_SESSION: "closeSession",
    OpCode.CREATE_SESSION: "createSession",
    OpCode.GET_ACL: "getACL",
    OpCode.SET_ACL: "setACL",
    OpCode.CREATE_CONTAINER: "createContainer",
    OpCode.DELETE_CONTAINER: "deleteContainer",
    OpCode.CREATE_TTL: "createTTL",
    OpCode.AUTH: "auth",
    OpCode.SET_WATCHES: "setWatches",
    OpCode.SASL: "sasl",
    OpCode.SET_WATCHES2: "setWatches",
}

_INT = struct.Struct("!i")
_LONG = struct.Struct("!q")
_TWO_INTS = struct.Struct("!ii")
_CONNECT = struct.Struct("!iqiq")
_CONNECTED = struct.Struct("!iiq")
_REPLY = struct.Struct("!iqi")
_STAT = struct.Struct("!qqqqiiiqiiq")
_MULTI_HEADER = struct.Struct("!i?i")

_OPEN_ACL = struct.pack("!ii", 1, 31) + b"\0\0\0\5world" + b"\0\0\0\6anyone"
_END_OF_MULTI = _MULTI_HEADER.pack(-1, True, -1)
NO_PASSWORD = bytes(16)


class Malformed(Exception):
    """The bytes violate ZooKeeper's format."""


class ConnectRequest(msgspec.Struct, frozen=True, gc=False):
    """The first message of a client; `session_id` 0 requests a new session."""

    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes = NO_PASSWORD


class ConnectResponse(msgspec.Struct, frozen=True, gc=False):
    """The server's response; `timeout_ms` 0: the session has expired."""

    timeout_ms: int
    session_id: int
    password: bytes


class ReplyHeader(msgspec.Struct, frozen=True, gc=False):
    """The header of every response and every watch event."""

    xid: int
    zxid: int
    error: int


class Reader:
    """Reads consecutive jute values from one message."""

    __slots__ = ("at", "bytes")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.bytes, self.at = data, at

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self.bytes) - self.at

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        try:
            values = form.unpack_from(self.bytes, self.at)
        except struct.error as error:
            raise Malformed(f"message ends at byte {len(self.bytes)}") from error
        self.at += form.size
        return values

    def int32(self) -> int:
        return self.unpack(_INT)[0]

    def int64(self) -> int:
        return self.unpack(_LONG)[0]

    def boolean(self) -> bool:
        byte = self.raw(1)
        if byte > b"\1":
            raise Malformed(f"a truth value of {byte[0]}")
        return byte == b"\1"

    def raw(self, length: int) -> bytes:
        if length < 0 or length > self.left:
            raise Malformed(f"{length} bytes announced, {self.left} there")
        self.at += length
        return self.bytes[self.at - length : self.at]

    def buffer(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.raw(length)

    def string(self) -> str:
        """A ustring; null becomes the empty string."""
        try:
            return (self.buffer() or b"").decode()
        except UnicodeDecodeError as error:
            raise Malformed(str(error)) from error

    def vector(self, read: Callable[[], T]) -> tuple[T, ...]:
        length = self.int32()
        if length < -1 or length > self.left:
            raise Malformed(f"{length} elements announced, {self.left} bytes there")
        return tuple(read() for _ in range(max(length, 0)))

    def stat(self) -> Stat:
        return Stat(*self.unpack(_STAT))

    def skip_acls(self) -> None:
        self.vector(lambda: (self.int32(), self.string(), self.string()))


def string(value: str) -> bytes:
    """A ustring with its length prefix."""
    return buffer(value.encode())


def buffer(value: bytes | None) -> bytes:
    """A buffer with its length prefix; None has length -1."""
    return _INT.pack(-1) if value is None else _INT.pack(len(value)) + value


def strings(values: Iterable[str]) -> bytes:
    """A vector of ustrings."""
    encoded = [string(value) for value in values]
    return _INT.pack(len(encoded)) + b"".join(encoded)


def frame(message: bytes) -> bytes:
    """A message with its length prefix, as on the wire."""
    return _INT.pack(len(message)) + message


def take_frames(stream: bytearray, longest: int = 1 << 30) -> Iterator[bytes]:
    """Remove the complete messages from the front of a stream, and yield them without their
    lengths. Raises Malformed for a length below 0 or above `longest`."""
    at, length = 0, len(stream)
    try:
        while length - at >= 4:
            (frame_length,) = _INT.unpack_from(stream, at)
            if not 0 <= frame_length <= longest:
                raise Malformed(f"a message of {frame_length} bytes")
            if length - at - 4 < frame_length:
                return
            at += 4 + frame_length
            yield bytes(stream[at - frame_length : at])
    finally:
        del stream[:at]


def encode_connect(request: ConnectRequest) -> bytes:
    """A ConnectRequest as of clients since 3.4 (with the read-only byte)."""
    head = _CONNECT.pack(0, request.last_zxid, request.timeout_ms, request.session_id)
    return head + buffer(request.password) + b"\0"


def decode_connect(message: bytes) -> ConnectRequest:
    reader = Reader(message)
    _, last_zxid, timeout_ms, session_id = reader.unpack(_CONNECT)
    return ConnectRequest(last_zxid, timeout_ms, session_id, reader.buffer() or b"")


def decode_connected(message: bytes) -> ConnectResponse:
    reader = Reader(message)
    _, timeout_ms, session_id = reader.unpack(_CONNECTED)
    return ConnectResponse(timeout_ms, session_id, reader.buffer() or b"")


def decode_reply_header(message: bytes) -> ReplyHeader:
    """The first 16 bytes of a reply."""
    return ReplyHeader(*Reader(message).unpack(_REPLY))


def encode_close(xid: int) -> bytes:
    return _TWO_INTS.pack(xid, OpCode.CLOSE_SESSION)


def encode_set_watches(
    relative_zxid: int, data: Iterable[str], exist: Iterable[str], child: Iterable[str]
) -> bytes:
    """SetWatches with the Java client's xid for it (-8)."""
    head = _TWO_INTS.pack(XID_SET_WATCHES, OpCode.SET_WATCHES) + _LONG.pack(relative_zxid)
    return head + strings(data) + strings(exist) + strings(child)


def encode_request(xid: int, request: Request, chroot: str = "") -> bytes:
    """Header and body of a request. Its paths get the prefix `chroot`; new znodes are open to
    all."""
    code, body = _encode_op(request, chroot)
    return _TWO_INTS.pack(xid, code) + body


def _encode_op(request: Request | Op, chroot: str) -> tuple[int, bytes]:
    if isinstance(request, Multi):
        parts = []
        for op in request.ops:
            code, body = _encode_op(op, chroot)
            parts.append(_MULTI_HEADER.pack(code, False, -1) + body)
        return OpCode.MULTI, b"".join(parts) + _END_OF_MULTI
    path = string(outside(chroot, request.path))
    if isinstance(request, SetData):
        return OpCode.SET_DATA, path + buffer(request.data) + _INT.pack(request.version)
    if isinstance(request, Create):
        return OpCode.CREATE, path + buffer(request.data) + _OPEN_ACL + _INT.pack(request.mode)
    if isinstance(request, Exists | GetData | GetChildren):
        return _READS[type(request)], path + bytes((request.watch,))
    if isinstance(request, Sync):
        return OpCode.SYNC, path
    code = OpCode.DELETE if isinstance(request, Delete) else OpCode.CHECK
    return code, path + _INT.pack(request.version)


def outside(chroot: str, path: str) -> str:
    """The server's path of a client's path."""
    return (chroot + path if path != "/" else chroot) or "/"


def inside(chroot: str, path: str) -> str:
    """The client's path of a server's path; a path outside of the chroot stays unchanged."""
    if not chroot or not (path == chroot or path.startswith(chroot + "/")):
        return path
    return path[len(chroot) :] or "/"


def decode_reply(request: Request, message: bytes, chroot: str = "") -> Reply:
    """The response to `request`, with paths relative to `chroot`. An unknown code becomes a runtime
    inconsistency, as in Kafka."""
    reader = Reader(message)
    _, zxid, error = reader.unpack(_REPLY)
    if error:
        return Reply(code_of(error), zxid)
    if isinstance(request, SetData | Exists):
        return Reply(Code.OK, zxid, stat=reader.stat())
    if isinstance(request, GetData):
        return Reply(Code.OK, zxid, data=reader.buffer(), stat=reader.stat())
    if isinstance(request, GetChildrenNames):
        return Reply(Code.OK, zxid, children=reader.vector(reader.string))
    if isinstance(request, GetChildren):
        return Reply(Code.OK, zxid, children=reader.vector(reader.string), stat=reader.stat())
    if isinstance(request, Create | Sync):
        return Reply(Code.OK, zxid, path=inside(chroot, reader.string()))
    if isinstance(request, Multi):
        results = tuple(_op_results(reader, chroot))
        # The first other code is the failure: earlier operations have OK, later ones
        # RUNTIME_INCONSISTENCY.
        failed = (result.code for result in results if result.code is not Code.OK)
        return Reply(next(failed, Code.OK), zxid, results=results)
    return Reply(Code.OK, zxid)


def _op_results(reader: Reader, chroot: str) -> Iterable[OpResult]:
    while True:
        kind, done, _ = reader.unpack(_MULTI_HEADER)
        if done:
            return
        if kind == OpCode.ERROR:
            yield OpResult(code_of(reader.int32()))
        elif kind == OpCode.CREATE:
            yield OpResult(Code.OK, path=inside(chroot, reader.string()))
        elif kind == OpCode.SET_DATA:
            yield OpResult(Code.OK, stat=reader.stat())
        elif kind in (OpCode.DELETE, OpCode.CHECK):
            yield OpResult(Code.OK)
        else:
            raise Malformed(f"result of operation {kind} in a multi")


def code_of(error: int) -> Code:
    return _CODES.get(error, Code.RUNTIME_INCONSISTENCY)


def decode_watch_event(message: bytes) -> tuple[int, str]:
    """The event type's number, and the server's path."""
    reader = Reader(message, _REPLY.size)
    kind, _ = reader.unpack(_TWO_INTS)
    return kind, reader.string()


def decode_request(message: bytes) -> tuple[int, Request | str]:
    """Xid and request. A request that is not in `zk.ops` is returned as its name (`ping`,
    `setWatches`, `closeSession`, `auth`, ... or `op 106` for an unknown number)."""
    reader = Reader(message)
    xid, code = reader.unpack(_TWO_INTS)
    return xid, _decode_body(code, reader)


def _decode_body(code: int, reader: Reader) -> Request | str:
    match code:
        case OpCode.CREATE | OpCode.CREATE2:
            path, data = reader.string(), reader.buffer()
            reader.skip_acls()
            mode = reader.int32()
            # Modes above 3 are containers and TTLs, which Kafka does not use.
            known = 0 <= mode <= 3
            return Create(path, data, CreateMode(mode)) if known else f"create with flags {mode}"
        case OpCode.DELETE:
            return Delete(reader.string(), reader.int32())
        case OpCode.SET_DATA:
            return SetData(reader.string(), reader.buffer(), reader.int32())
        case OpCode.EXISTS:
            return Exists(reader.string(), reader.boolean())
        case OpCode.GET_DATA:
            return GetData(reader.string(), reader.boolean())
        case OpCode.GET_CHILDREN:
            return GetChildrenNames(reader.string(), reader.boolean())
        case OpCode.GET_CHILDREN2:
            return GetChildren(reader.string(), reader.boolean())
        case OpCode.SYNC:
            return Sync(reader.string())
        case OpCode.PING:
            return "ping"
        case OpCode.MULTI:
            return Multi(tuple(_multi_ops(reader)))
        case _:
            return _OTHER_NAMES[OpCode(code)] if code in _KNOWN else f"op {code}"


def _multi_ops(reader: Reader) -> Iterable[Op]:
    while True:
        code, done, _ = reader.unpack(_MULTI_HEADER)
        if done:
            return
        # A check occurs only within a multi, never as a request with this number.
        check = code == OpCode.CHECK
        if code == OpCode.MULTI:  # refused before it is read, because each level would nest a call
            raise Malformed("a multi in a multi")
        op = Check(reader.string(), reader.int32()) if check else _decode_body(code, reader)
        if not isinstance(op, Create | Delete | SetData | Check):
            raise Malformed(f"operation {code} in a multi")
        yield op


_KNOWN = {int(code) for code in _OTHER_NAMES}
_READS: dict[type, OpCode] = {
    Exists: OpCode.EXISTS,
    GetData: OpCode.GET_DATA,
    GetChildren: OpCode.GET_CHILDREN2,
    GetChildrenNames: OpCode.GET_CHILDREN,
}
_CODES = {int(code): code for code in Code}
