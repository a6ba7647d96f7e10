"""ZooKeeper sessions of a process that write notes of requests and responses, for the merging of
traces.

The server's log has the transactions, but this process does not read it: a response is noted with
its zxid, a watch with the zxid after which it was set. Does not know brokers.
"""

from __future__ import annotations

from emulator.kernel.scheduler import Kernel
from emulator.worlds.network.cause_links import CausalityLog, cause_of
from zk.ops import (
    EventType,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Reply,
    Request,
    SessionState,
    WatchedEvent,
    name_of,
)
from zk.real.kazoo_service import KazooService
from zk.real.kazoo_wire import KazooSession
from zk.real.session_wrapper import SessionAround
from zk.wire import Lane, Listener, OnReply, Session

_READS = (Exists, GetData, GetChildren)


def named(request: Request) -> str:
    """The operation's name in notes: `setData /brokers/topics/...`."""
    path = request.ops[-1].path if isinstance(request, Multi) else request.path
    return f"{name_of(request)} {path}"


class LinkedService:
    """A service whose sessions write notes."""

    def __init__(self, service: KazooService, links: CausalityLog, kernel: Kernel) -> None:
        self._service, self._links, self._kernel = service, links, kernel

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        linked = _LinkedListener(self._links, self._kernel, listener)
        self._links.note("asked", "connect", cause=self._kernel.cause)
        linked.session = self._service.open_session(client, timeout_ms, lane, linked)
        return _LinkedSession(self._links, self._kernel, linked)


class _LinkedListener:
    def __init__(self, links: CausalityLog, kernel: Kernel, listener: Listener) -> None:
        self._links, self._kernel, self._listener = links, kernel, listener
        self.session: KazooSession | None = None
        self.armed: dict[tuple[str, bool], int] = {}
        self.expired = False
        """The server has ended the session: a close is no request any more."""

    def on_watch(self, event: WatchedEvent) -> None:
        of_children = event.type is EventType.NODE_CHILDREN_CHANGED
        # A watch fires for the first change after the read that set it: with that read's zxid the
        # change is found in the server's log.
        since = self.armed.get((event.path, of_children), 0)
        note = self._links.note("fired", f"{event.type.value} {event.path}", zxid=since)
        self._kernel.cause = cause_of(note)
        self._listener.on_watch(event)

    def on_state(self, state: SessionState) -> None:
        session_id = 0 if self.session is None else self.session.session_id
        self.expired = self.expired or state is SessionState.EXPIRED
        note = self._links.note("session", state.value, zxid=session_id)
        self._kernel.cause = cause_of(note)
        self._listener.on_state(state)


class _LinkedSession(SessionAround):
    def __init__(self, links: CausalityLog, kernel: Kernel, listener: _LinkedListener) -> None:
        assert listener.session is not None
        super().__init__(listener.session)
        self._links, self._kernel, self._listener = links, kernel, listener
        self._sends = listener.session

    def submit(self, request: Request, on_reply: OnReply) -> None:
        request_note = self._links.note("asked", named(request), cause=self._kernel.cause)

        def replied(reply: Reply) -> None:
            sent_in, xid = self._sends.session_id, self._sends.answering
            name = named(request)
            note = self._links.note("told", name, request_note, -1, reply.zxid, sent_in, xid)
            self._kernel.cause = cause_of(note)
            if isinstance(request, _READS) and request.watch:
                of_children = isinstance(request, GetChildren)
                self._listener.armed[request.path, of_children] = reply.zxid
            on_reply(reply)

        self._session.submit(request, replied)

    def close(self) -> None:
        """Send no closeSession if the server has already ended the session."""
        if not self._listener.expired:
            self._links.note("asked", "closeSession", cause=self._kernel.cause)
        self._session.close()
