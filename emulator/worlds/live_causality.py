"""What led to what, between brokers and a real server: the causes of events that come from outside.

A request on the wire is caused by the thread that sent it, a transaction by its request, a reply or
a watch by the transaction. The model knows this by itself; in the live world requests come from
taps, transactions from a log, and each is matched here: by order within a client, by zxid for
watches. Where nothing fits the cause is none. Owns this matching; must not know brokers.
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
"""Changes of one znode that are kept: a watch fires by the first one after it was set."""


class InFlightRequest(msgspec.Struct, eq=False):
    """One request on its way: the events that it was sent by, passed with, and was applied in."""

    request: Request | str
    sender: Runnable | None
    sent: int
    passed: int = -1
    applied: int = -1
    lost: bool = False


class LiveCauses:
    """`zk.wire.Observer` of the live world: gives each event its cause, and hands it on."""

    def __init__(
        self,
        kernel: Kernel,
        observer: TracingObserver,
        client_of: Callable[[int], str],
        catch_up: Callable[[], None],
    ) -> None:
        """`catch_up` has everything told here, before it returns, that has passed on the wire."""
        self._kernel, self._observer, self._client_of = kernel, observer, client_of
        self._catch_up = catch_up
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
        """A thread gives a request to its client."""
        flight = InFlightRequest(request, self._kernel.current, self._kernel.cause)
        self._to_pass[client].append(flight)
        return flight

    def expiring(self, client: str) -> None:
        """What is done now has the server end the client's session."""
        cause = self._kernel.cause
        self._to_apply[client].append(InFlightRequest(CLOSE, None, cause, passed=cause))

    def forget(self, client: str) -> None:
        """A new process of this name: what the old one did not get rid of will never pass."""
        self._to_pass[client].clear()

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed on the wire: the client's next one that looks like it."""
        waiting = self._to_pass[client]
        flight = _take(waiting, lambda one: not one.lost and one.request == request)
        sender, sent = (flight.sender, flight.sent) if flight is not None else (None, -1)
        tell = self._observer.on_request
        with self._as_of(at_us):
            seq = self._told(sender, sent, lambda: tell(at_us, client, request))
        if flight is not None:
            flight.passed = seq
            if isinstance(request, _LOGGED):
                self._to_apply[client].append(flight)

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        """The server logged a transaction: its session's next write that can be it, of those whose
        answer was lost only where no other is on its way."""
        client = self._client_of(transaction.session_id)
        flight = self._applied(client, transaction)
        if flight is None and client:  # the server was faster than who reads along
            self._catch_up()
            flight = self._applied(client, transaction)
        cause = flight.passed if flight is not None else -1
        tell = self._observer.on_transaction
        seq = self._told(self._server, cause, lambda: tell(at_us, transaction))
        if flight is not None:
            flight.applied = seq
        if transaction.op in _LOGGED_AS.values():
            self._sessions[transaction.session_id] = seq
        for change in changes_of(transaction):
            self._changes[change].append((transaction.zxid, seq))

    def _applied(self, client: str, transaction: Transaction) -> InFlightRequest | None:
        waiting, fits = self._to_apply[client], partial(_fits, transaction)
        return _take(waiting, lambda one: not one.lost and fits(one)) or _take(waiting, fits)

    @contextmanager
    def _as_of(self, at_us: int) -> Iterator[None]:
        """Emit with the time at which it passed: nothing was traced since, unless what is told here
        waited for its turn."""
        kernel = self._kernel
        now, before = kernel.now, kernel.sink.events
        kernel.now = min(now, max(at_us, before[-1].t if before else 0))
        try:
            yield
        finally:
            kernel.now = now

    def _told(self, by: Runnable | None, cause: int, tell: Callable[[], None]) -> int:
        """Emit in another's name; the event's seq."""
        kernel = self._kernel
        before = kernel.current, kernel.cause
        kernel.current, kernel.cause = by, cause
        tell()
        seq = kernel.cause
        kernel.current, kernel.cause = before
        return seq

    # -- consequences -----------------------------------------------------------------------------

    def answered(self, client: str, flight: InFlightRequest, reply: Reply) -> None:
        """What the owner does next is because of this reply."""
        flight.lost = reply.code in (Code.CONNECTION_LOSS, Code.SESSION_EXPIRED)
        self._kernel.cause = max(flight.applied, flight.passed, flight.sent)
        request = flight.request
        if isinstance(request, _READS) and request.watch:
            self._armed[client, request.path, isinstance(request, GetChildren)] = reply.zxid

    def fired(self, client: str, event: WatchedEvent) -> None:
        """What the owner does next is because of the first such change since the watch was set."""
        of_children = event.type is EventType.NODE_CHILDREN_CHANGED
        since = self._armed.get((client, event.path, of_children), 0)
        known = self._changes.get((event.type, event.path), ())
        self._kernel.cause = next((seq for zxid, seq in known if zxid > since), -1)

    def session_changed(self, session_id: int) -> None:
        """What the owner does next is because the session was made, or ended."""
        self._kernel.cause = self._sessions.get(session_id, -1)


def _take(
    waiting: deque[InFlightRequest], fits: Callable[[InFlightRequest], bool]
) -> InFlightRequest | None:
    """The first that fits; what was before it will not come any more."""
    for place, flight in enumerate(waiting):
        if fits(flight):
            for _ in range(place + 1):
                waiting.popleft()
            return flight
    return None


def _fits(transaction: Transaction, flight: InFlightRequest) -> bool:
    return _can_be(flight.request, transaction)


def _can_be(request: Request | str, transaction: Transaction) -> bool:
    if isinstance(request, str):
        return _LOGGED_AS.get(request) == transaction.op
    if transaction.op == "error":
        return True
    if name_of(request) != transaction.op:
        return False
    return isinstance(request, Multi) or transaction.path.startswith(request.path)


def changes_of(transaction: Transaction) -> Iterator[tuple[EventType, str]]:
    """The events that a transaction can fire, by path."""
    ops = transaction.ops or (transaction,)
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
