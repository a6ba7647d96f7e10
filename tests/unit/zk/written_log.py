"""A transaction log as a server writes it, for tests of its readers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

CREATE, DELETE, SET_DATA, CHECK, MULTI, CREATE_SESSION, CLOSE_SESSION, ERROR = (
    1, 2, 5, 13, 14, -10, -11, -1,
)  # fmt: skip
HEAD = b"ZKLG" + struct.pack("!iq", 2, 0)
PADDING = bytes(1024)


def text(value: str | bytes | None) -> bytes:
    """A string or buffer; -1 is none."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data


def create(path: str, data: bytes | None, *, ephemeral: bool = False) -> tuple[int, bytes]:
    acls = struct.pack("!ii", 1, 31) + text("world") + text("anyone")
    return CREATE, text(path) + text(data) + acls + struct.pack("!?i", ephemeral, 1)


def set_data(path: str, data: bytes | None, version: int) -> tuple[int, bytes]:
    return SET_DATA, text(path) + text(data) + struct.pack("!i", version)


def delete(path: str) -> tuple[int, bytes]:
    return DELETE, text(path)


def check(path: str, version: int) -> tuple[int, bytes]:
    return CHECK, text(path) + struct.pack("!i", version)


def multi(*ops: tuple[int, bytes]) -> tuple[int, bytes]:
    parts = b"".join(struct.pack("!i", kind) + text(body) for kind, body in ops)
    return MULTI, struct.pack("!i", len(ops)) + parts


def create_session(timeout_ms: int) -> tuple[int, bytes]:
    return CREATE_SESSION, struct.pack("!i", timeout_ms)


def close_session(*removed: str) -> tuple[int, bytes]:
    return CLOSE_SESSION, struct.pack("!i", len(removed)) + b"".join(map(text, removed))


def error(code: int) -> tuple[int, bytes]:
    return ERROR, struct.pack("!i", code)


def record(session: int, zxid: int, transaction: tuple[int, bytes], at_ms: int = 0) -> bytes:
    """One record, down to its checksum; cxid is the zxid."""
    kind, body = transaction
    data = struct.pack("!qiqqi", session, zxid, zxid, at_ms, kind) + body
    return struct.pack("!qi", zlib.adler32(data), len(data)) + data + b"B"


def log(records: Sequence[bytes]) -> bytes:
    """A whole file, padded as the server does."""
    return HEAD + b"".join(records) + PADDING
