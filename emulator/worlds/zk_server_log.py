"""Transactions of a real server for the trace: from its own log or, if that cannot be read, from
the responses to writes.

Both emit a transaction before its effects: a broker's response or watch event comes after it. Knows
ZooKeeper's structs and the observer, no brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from emulator.kernel.scheduler import Kernel
from zk.errors import Code
from zk.ops import (
    Check,
    Create,
    Delete,
    Multi,
    Op,
    OpResult,
    Reply,
    Request,
    SetData,
    Transaction,
    name_of,
)
from zk.real.txnlog import Entry, LogTail
from zk.wire import Observer

_WRITES = (Create, Delete, SetData, Multi)


class ServerLog:
    """The transaction log of a server on this machine, read as it grows."""

    def __init__(self, folder: Path, observer: Observer, kernel: Kernel) -> None:
        self._tail, self._observer, self._kernel = LogTail(folder), observer, kernel
        self._read_up_to = 0

    def poll(self) -> None:
        """Add new transactions to the trace."""
        self._emit_transactions(self._tail.read())

    def replied(self, session_id: int, request: Request, reply: Reply) -> None:
        """A response has arrived: its write is in the log by now."""
        # Reads are not logged, and an earlier poll may already have read this write.
        if isinstance(request, _WRITES) and not 0 < reply.zxid <= self._read_up_to:
            self._emit_transactions(
                self._tail.read_up_to(reply.zxid) if reply.zxid > 0 else self._tail.read()
            )

    def close(self) -> None:
        """Stop reading."""
        self._tail.close()

    def _emit_transactions(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._read_up_to = entry.transaction.zxid
            self._observer.on_transaction(self._kernel.now, entry.transaction)


class ReplyLog:
    """A server whose log cannot be read: transactions as far as responses show them. Session
    expiries and the writes of other clients are missing."""

    def __init__(self, observer: Observer, kernel: Kernel) -> None:
        self._observer, self._kernel = observer, kernel

    def poll(self) -> None:
        """Nothing to read."""

    def close(self) -> None:
        """Nothing to close."""

    def replied(self, session_id: int, request: Request, reply: Reply) -> None:
        """A response has arrived: an applied write was a transaction."""
        # It is unknown whether a write with a lost response was applied.
        if not isinstance(request, _WRITES) or reply.code is Code.CONNECTION_LOSS:
            return
        transaction = _transaction(session_id, request, reply)
        self._observer.on_transaction(self._kernel.now, transaction)


def _transaction(
    session_id: int, request: Create | Delete | SetData | Multi, reply: Reply
) -> Transaction:
    if reply.code is not Code.OK:
        return Transaction(reply.zxid, session_id, "error", code=int(reply.code))
    if isinstance(request, Multi):
        ops = tuple(
            _op(session_id, reply.zxid, op, result)
            for op, result in zip(request.ops, reply.results, strict=True)
        )
        return Transaction(reply.zxid, session_id, "multi", ops=ops)
    stat = reply.stat
    return _op(session_id, reply.zxid, request, OpResult(Code.OK, reply.path, stat))


def _op(session_id: int, zxid: int, op: Op, result: OpResult) -> Transaction:
    """As the server logs it: setData with the version after the write, check with the expected one
    + 1."""
    version = op.version + 1 if isinstance(op, Check) else None
    if isinstance(op, SetData) and result.stat is not None:
        version = result.stat.version
    return Transaction(
        zxid,
        session_id,
        name_of(op),
        result.path or op.path,
        op.data if isinstance(op, Create | SetData) else None,
        version,
        isinstance(op, Create) and op.mode.ephemeral,
    )
