"""The causes of events between brokers and a real ZooKeeper server.

The thread that sent a request is its cause, the request is the transaction's cause, and the
transaction is that of the response or watch. The model knows this by itself. In the live world
requests come from taps and transactions from a log, and are matched here: by order within a client,
and by zxid for watches. Without a match there is no cause. Owns this matching; does not know
brokers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from emulator.kernel.scheduler import Kernel, Runnable
from emulator.worlds.zk_observer import TracingObserver
from zk import paths
from zk.errors import Code
from zk.ops import (
    Create,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Reply,
    Request,
    SetData,
    Transaction,
    WatchedEvent,
    name_of,
)

CONNECT, CLOSE = "connect", "closeSession"
_WRITES = (Create, Delete, SetData, Multi)
_LOGGED = (str, *_WRITES)
_READS = (Exists, GetData, GetChildren)
_LOGGED_AS = {CONNECT: "createSession", CLOSE: "closeSession"}
_REMEMBERED = 64
"""Changes of one znode that are remembered: the first one after a watch was set fires it."""


class InFlightRequest(msgspec.Struct, eq=False):
    """One request in flight: the numbers of the events in which it was sent, passed on the wire and
    applied."""

    request: Request | str
    sender: Runnable | None
    sent: int
    passed: int = -1
    applied: int = -1
    lost: bool = False


class LiveCauses:
    """`zk.wire.Observer` of the live world: adds the cause to each event and passes the event
    on."""

    def __init__(
        self,
        kernel: Kernel,
        observer: TracingObserver,
        client_of: Callable[[int], str],
        catch_up: Callable[[], None],
    ) -> None:
        """`catch_up` reports everything that has passed on the wire before it returns."""
        self._kernel, self._observer, self._client_of = kernel, observer, client_of
        self._catch_up = catch_up
        # Never runs: it provides the process and thread names of transactions.
        self._server = kernel.process("zookeeper").lane("SyncThread").callback(None, -1)
        self._to_pass: dict[str, deque[InFlightRequest]] = defaultdict(deque)
        self._to_apply: dict[str, deque[InFlightRequest]] = defaultdict(deque)
        self._sessions: dict[int, int] = {}
        self._armed: dict[tuple[str, str, bool], int] = {}
        self._changes: dict[tuple[EventType, str], deque[tuple[int, int]]] = defaultdict(
            lambda: deque(maxlen=_REMEMBERED)
        )

    # -- requests ---------------------------------------------------------------------------------

    def submitted(self, client: str, request: Request | str) -> InFlightRequest:
        """A thread passes a request to its client."""
        in_flight = InFlightRequest(request, self._kernel.current, self._kernel.cause)
        self._to_pass[client].append(in_flight)
        return in_flight

    def expiring(self, client: str) -> None:
        """The server is about to end the client's session, caused by the current event."""
        cause = self._kernel.cause
        self._to_apply[client].append(InFlightRequest(CLOSE, None, cause, passed=cause))

    def forget(self, client: str) -> None:
        """A new process with this name: requests that the old one had not sent will never pass."""
        self._to_pass[client].clear()

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed on the wire: the client's next one that matches."""
        waiting = self._to_pass[client]
        in_flight = _pop_first(waiting, lambda one: not one.lost and one.request == request)
        sender, sent = (in_flight.sender, in_flight.sent) if in_flight is not None else (None, -1)
        emit = self._observer.on_request
        with self._as_of(at_us):
            seq = self._emit_as(sender, sent, lambda: emit(at_us, client, request))
        if in_flight is not None:
            in_flight.passed = seq
            if isinstance(request, _LOGGED):
                self._to_apply[client].append(in_flight)

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        """The server logged a transaction: match it with its session's next write that fits. A
        write whose response was lost may not have been applied, so it matches only if no other
        does.
        """
        client = self._client_of(transaction.session_id)
        waiting, fits = self._to_apply[client], partial(_fits, transaction)
        in_flight = _pop_first(waiting, lambda one: not one.lost and fits(one))
        if in_flight is None and client:
            # The server's log may be faster than the tap's thread; a retry, too, may be on its way.
            self._catch_up()
            in_flight = _pop_first(waiting, lambda one: not one.lost and fits(one))
        if in_flight is None:
            in_flight = _pop_first(waiting, fits)
        cause = in_flight.passed if in_flight is not None else -1
        emit = self._observer.on_transaction
        seq = self._emit_as(self._server, cause, lambda: emit(at_us, transaction))
        if in_flight is not None:
            in_flight.applied = seq
        if transaction.op in _LOGGED_AS.values():
            self._sessions[transaction.session_id] = seq
        for change in changes_of(transaction):
            self._changes[change].append((transaction.zxid, seq))

    @contextmanager
    def _as_of(self, at_us: int) -> Iterator[None]:
        """Emit with the time at which the request passed, but not before the last event: the
        request may have waited in the inbox."""
        kernel = self._kernel
        now, before = kernel.now, kernel.sink.events
        kernel.now = min(now, max(at_us, before[-1].t if before else 0))
        try:
            yield
        finally:
            kernel.now = now

    def _emit_as(self, by: Runnable | None, cause: int, emit: Callable[[], None]) -> int:
        """Emit as another thread with this cause; returns the event's number."""
        kernel = self._kernel
        before = kernel.current, kernel.cause
        kernel.current, kernel.cause = by, cause
        emit()
        seq = kernel.cause
        kernel.current, kernel.cause = before
        return seq

    # -- consequences -----------------------------------------------------------------------------

    def answered(self, client: str, in_flight: InFlightRequest, reply: Reply) -> None:
        """This response is the cause of the owner's next events."""
        in_flight.lost = reply.code in (Code.CONNECTION_LOSS, Code.SESSION_EXPIRED)
        self._kernel.cause = max(in_flight.applied, in_flight.passed, in_flight.sent)
        request = in_flight.request
        if isinstance(request, _READS) and request.watch:
            self._armed[client, request.path, isinstance(request, GetChildren)] = reply.zxid

    def fired(self, client: str, event: WatchedEvent) -> None:
        """The first matching change since the watch was set is the cause of the owner's next
        events."""
        of_children = event.type is EventType.NODE_CHILDREN_CHANGED
        # Earlier changes came with the read that set the watch.
        since = self._armed.get((client, event.path, of_children), 0)
        known = self._changes.get((event.type, event.path), ())
        self._kernel.cause = next((seq for zxid, seq in known if zxid > since), -1)

    def session_changed(self, session_id: int) -> None:
        """The session's start or end is the cause of the owner's next events."""
        self._kernel.cause = self._sessions.get(session_id, -1)


def _pop_first(
    waiting: deque[InFlightRequest], fits: Callable[[InFlightRequest], bool]
) -> InFlightRequest | None:
    """Remove and return the first match, and drop those before it: a client's requests pass in
    order."""
    for place, in_flight in enumerate(waiting):
        if fits(in_flight):
            for _ in range(place + 1):
                waiting.popleft()
            return in_flight
    return None


def _fits(transaction: Transaction, in_flight: InFlightRequest) -> bool:
    return _can_be(in_flight.request, transaction)


def _can_be(request: Request | str, transaction: Transaction) -> bool:
    if isinstance(request, str):
        return _LOGGED_AS.get(request) == transaction.op
    # The log has the error's code without the operation: any write may have failed like this.
    if transaction.op == "error":
        return True
    if name_of(request) != transaction.op:
        return False
    # A sequential create is logged with its number at the end of the path.
    return isinstance(request, Multi) or transaction.path.startswith(request.path)


def changes_of(transaction: Transaction) -> Iterator[tuple[EventType, str]]:
    """The events that a transaction can fire, by path."""
    ops = transaction.ops or (transaction,)
    # A failed multi has changed nothing.
    if any(op.op == "error" for op in ops):
        return
    for op in ops:
        if op.op in _FIRES:
            yield _FIRES[op.op], op.path
        if op.op in ("create", "delete"):
            yield EventType.NODE_CHILDREN_CHANGED, paths.parent(op.path)
    for path in transaction.removed:
        yield EventType.NODE_DELETED, path
        yield EventType.NODE_CHILDREN_CHANGED, paths.parent(path)


_FIRES = {
    "create": EventType.NODE_CREATED,
    "delete": EventType.NODE_DELETED,
    "setData": EventType.NODE_DATA_CHANGED,
}
