"""How many bytes a request is on the wire, its length in front included.

Owns the way from what is known of a request that was sent (its name, path and payload) to jute's
own encoding of it; which version, watch or number it has makes no difference to the size. It must
not know who sends.
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
    """`op` by ZooKeeper's name; `multi/setData` is one fenced by a check of `/controller_epoch`."""
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
