"""The size of a request on the wire, in bytes, including its length prefix.

Builds the jute encoding from what is known of a sent request: its name, path and payload. Version,
watch flag and sequence number do not affect the size. This module does not know the sender.
"""

from __future__ import annotations

from collections.abc import Callable

from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Request,
    SetData,
    Sync,
)
from zk.paths import CONTROLLER_EPOCH
from zk.real.jute import encode_request, frame

_READS: dict[str, Callable[[str], Request]] = {
    "getData": GetData,
    "exists": Exists,
    "getChildren2": GetChildren,
    "sync": Sync,
}


def request_bytes(op: str, path: str, payload: bytes = b"") -> int:
    """`op` is ZooKeeper's name; `multi/setData` is a setData fenced by a check of
    `/controller_epoch`."""
    return len(frame(encode_request(0, _request(op, path, payload))))


def _request(op: str, path: str, payload: bytes) -> Request:
    if inner := op.partition("/")[2]:
        return Multi((Check(CONTROLLER_EPOCH, 0), _write(inner, path, payload)))
    return _READS[op](path) if op in _READS else _write(op, path, payload)


def _write(op: str, path: str, payload: bytes) -> Create | Delete | SetData:
    if op == "setData":
        return SetData(path, payload, 0)
    if op == "create":
        return Create(path, payload, CreateMode.PERSISTENT_SEQUENTIAL)
    assert op == "delete", f"{op}: no such request"
    return Delete(path, 0)
