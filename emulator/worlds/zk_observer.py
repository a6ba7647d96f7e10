"""Traffic between brokers and ZooKeeper, and ZooKeeper's transactions, as trace events.

Used by both worlds: the model calls it directly; the live world feeds it from taps and from the
server's log. Knows the event types and ZooKeeper's structs; of brokers only their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from emulator.trace import events
from emulator.trace.values import LoggedOp, WireOp
from zk.ops import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Op,
    Request,
    SetData,
    Transaction,
    name_of,
)

_WATCHING = (GetData, Exists, GetChildren)
_VERSIONED = (SetData, Delete, Check)


def broker_of(client: str) -> int:
    """`broker-2` is 2; a client that is not a broker is 0."""
    kind, _, number = client.rpartition("-")
    return int(number) if kind == "broker" and number.isdecimal() else 0


class Emits(Protocol):
    """A kernel, or another source of events."""

    def emit(self, event_type: Callable[..., Any], broker: int, *fields: Any) -> Any: ...


class TracingObserver:
    """zk.wire.Observer that writes to the trace."""

    def __init__(self, kernel: Emits, client_of: Callable[[int], str]) -> None:
        self._kernel, self._client_of = kernel, client_of

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed on the wire."""
        emit, broker = self._kernel.emit, broker_of(client)
        if isinstance(request, str):
            emit(events.ZkRequest, broker, request)
        elif isinstance(request, Multi):
            ops = tuple(_wire_op(op) for op in request.ops)
            emit(events.ZkRequest, broker, "multi", None, None, None, None, ops)
        else:
            emit(
                events.ZkRequest,
                broker,
                name_of(request),
                request.path,
                request.watch if isinstance(request, _WATCHING) else None,
                _version(request),
                _flags(request),
            )

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        """ZooKeeper logged a transaction."""
        self._kernel.emit(
            events.ZkTransaction,
            broker_of(self._client_of(transaction.session_id)),
            transaction.zxid,
            transaction.op,
            transaction.path or None,
            _text(transaction.data),
            transaction.version,
            transaction.ephemeral,
            tuple(_logged_op(op) for op in transaction.ops),
            transaction.code or None,
            transaction.timeout_ms or None,
            transaction.removed,
        )


def _version(request: object) -> int | None:
    return request.version if isinstance(request, _VERSIONED) else None


def _flags(request: object) -> str | None:
    return request.mode.name.lower() if isinstance(request, Create) else None


def _wire_op(op: Op) -> WireOp:
    return WireOp(name_of(op), op.path, _version(op), _flags(op))


def _logged_op(op: Transaction) -> LoggedOp:
    return LoggedOp(
        op.op, op.path or None, _text(op.data), op.version, op.ephemeral, op.code or None
    )


def _text(data: bytes | None) -> str | None:
    # A znode may have any bytes, and a trace is text.
    return None if data is None else data.decode("utf-8", "replace")
