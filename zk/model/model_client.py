"""One client session of the modelled service: behaves as Java's ClientCnxn 3.5.9 does.

It pings, notices silence, drops and renews its connection, re-arms its watches, and learns that the
session expired only from the server's answer. Runs on its owner's lane, so it pauses with the
process. Knows the server only as something that accepts connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Protocol

from zk.errors import Code
from zk.model.link import Link, Pipe
from zk.model.packets import (
    CLOSE_SESSION,
    END_OF_STREAM,
    PING,
    CloseSession,
    Connect,
    Connected,
    SetWatches,
    ToClient,
    ToServer,
)
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
)
from zk.wire import Direction, Lane, Listener, OnReply, Timer, labelled

SPIN_DELAY_US = 1_000_000
"""StaticHostProvider.next: the sleep before a server is tried again that was tried last."""

CLEANUP_US = 100_000
"""ClientCnxnSocketNIO.cleanup sleeps before it fails the requests that were sent or queued."""

EARLY_PING_US = 1_000_000
MAX_SEND_PING_INTERVAL_US = 10_000_000


class Server(Protocol):
    """What a client needs of the service."""

    def accept(
        self, link: Link, to_client: Pipe[ToClient], on_pass: Callable[[ToServer], None]
    ) -> Pipe[ToServer] | None:
        """A new connection's way to the server; None: connection refused."""
        ...


class Phase(Enum):
    """Where ClientCnxn's send thread stands."""

    SLEEPING = auto()
    CLEANING = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    EXPIRED = auto()
    CLOSED = auto()
    DEAD = auto()


_OVER = (Phase.EXPIRED, Phase.CLOSED, Phase.DEAD)
_WATCHING = (Exists, GetData, GetChildren)


class ClientWatches:
    """The watches that the server's answers have confirmed (ZooKeeper.java ZKWatchManager)."""

    __slots__ = ("child", "data", "exist")

    def __init__(self) -> None:
        self.data: dict[str, None] = {}
        self.exist: dict[str, None] = {}
        self.child: dict[str, None] = {}

    def register(self, request: Request, code: Code) -> None:
        if isinstance(request, GetChildren):
            if code is Code.OK:
                self.child[request.path] = None
        elif isinstance(request, (Exists, GetData)):
            if code is Code.OK:
                self.data[request.path] = None
            elif code is Code.NO_NODE and isinstance(request, Exists):
                self.exist[request.path] = None

    def take(self, event: WatchedEvent) -> bool:
        """Whether anybody watches for this; they do not any more (materialize)."""
        tables: tuple[dict[str, None], ...] = (self.data, self.exist)
        if event.type is EventType.NODE_CHILDREN_CHANGED:
            tables = (self.child,)
        elif event.type is EventType.NODE_DELETED:
            # One event ends all watches of the path; the server sends it once.
            tables = (self.data, self.exist, self.child)
        is_watched = any(event.path in table for table in tables)
        for table in tables:
            table.pop(event.path, None)
        return is_watched

    def request(self, last_zxid: int) -> SetWatches | None:
        if not (self.data or self.exist or self.child):
            return None
        return SetWatches(last_zxid, tuple(self.data), tuple(self.exist), tuple(self.child))


Sent = Request | SetWatches | CloseSession


class ModelSession:
    """zk.wire.Session over a modelled link; see there."""

    def __init__(
        self,
        server: Server,
        link: Link,
        timeout_ms: int,
        lane: Lane,
        listener: Listener,
        on_pass: Callable[[ToServer], None],
    ) -> None:
        self._server = server
        self._link = link
        self._lane = lane
        self._now_us = lane.now_us
        self._listener = listener
        self._on_pass = on_pass
        self._wished_ms = timeout_ms
        self._session_id = 0
        self._phase = Phase.SLEEPING
        self._closing = False
        self.linked = False
        self._told_connected = False
        self._ever_connected = False
        self._last_zxid = 0
        self._watches = ClientWatches()
        self._outgoing: deque[tuple[Sent, OnReply]] = deque()
        self._pending: deque[tuple[Sent, OnReply]] = deque()
        self._to_server: Pipe[ToServer] | None = None
        self._from_server: Pipe[ToClient] | None = None
        self._timer: Timer | None = None
        self._last_sent_us = self._last_heard_us = self._now_us()
        self._set_timeouts(timeout_ms)
        lane.post(self._connect)

    # what the owner may do

    @property
    def session_id(self) -> int:
        return self._session_id

    def submit(self, request: Request, on_reply: OnReply) -> None:
        """Send now, or once connected; a session that is over answers by itself."""
        if self._phase is Phase.CONNECTED and not self._closing:
            self._send(request, on_reply)
        elif self._phase in _OVER or self._closing:
            code = Code.SESSION_EXPIRED if self._phase in _OVER else Code.CONNECTION_LOSS
            # Never from inside submit: a callback comes on the lane, as an answer would.
            self._lane.post(partial(self._answer, on_reply, Reply(code)))
        else:
            self._outgoing.append((request, on_reply))

    def close(self) -> None:
        if self._closing or self._phase in _OVER:
            return
        if self._phase is Phase.CONNECTED:
            self._send(CLOSE_SESSION, self._on_closed)
            self._closing = True
        elif self._phase is Phase.CONNECTING:
            # It goes out behind what waits, once there is an answer to Connect.
            self._outgoing.append((CLOSE_SESSION, self._on_closed))
            self._closing = True
        else:
            self._closing = True
            self._lane.post(self._end)

    def abandon(self) -> None:
        self._phase = Phase.DEAD
        self._hang_up()
        self._outgoing.clear()
        self._pending.clear()

    # sending

    def _send(self, packet: Sent, on_reply: OnReply) -> None:
        self._pending.append((packet, on_reply))
        self._last_sent_us = self._now_us()
        assert self._to_server is not None
        process_us = self._link.latency("zk_process", self._link.client)
        purpose = "zk_multi" if isinstance(packet, Multi) else "zk_request"
        self._to_server.send(packet, purpose, process_us)

    @labelled("answer")
    def _answer(self, on_reply: OnReply, reply: Reply) -> None:
        if self._phase is not Phase.DEAD:
            on_reply(reply)

    # connecting

    @labelled("connect")
    def _connect(self) -> None:
        if self._phase is not Phase.SLEEPING or self._closing:
            return
        # Only now: until the next attempt begins getState goes on to say CONNECTED.
        self.linked = False
        self._last_sent_us = self._last_heard_us = self._now_us()
        self._from_server = Pipe(self._link, self._lane, Direction.TO_CLIENT, self._receive)
        self._to_server = self._server.accept(self._link, self._from_server, self._on_pass)
        if self._to_server is None:
            self._disconnect()
            return
        self._phase = Phase.CONNECTING
        self._ever_connected = True
        connect = Connect(self._session_id, self._wished_ms, self._last_zxid)
        self._to_server.send(connect, "zk_connect")
        self._arm()

    def _on_connected(self, answer: Connected) -> None:
        if answer.timeout_ms <= 0:
            # Event first, then the requests that had waited (ClientCnxn.onConnected, cleanup).
            self._phase = Phase.EXPIRED
            self._hang_up()
            waiting, self._outgoing = self._outgoing, deque()
            self._listener.on_state(SessionState.EXPIRED)
            self._lane.call_later(CLEANUP_US, partial(self._fail, waiting, Code.SESSION_EXPIRED))
            return
        self._phase = Phase.CONNECTED
        self.linked = self._told_connected = True
        self._session_id = answer.session_id
        self._set_timeouts(answer.timeout_ms)
        # SetWatches goes first: no request of the owner may be answered before the watches that
        # missed a change have fired.
        set_watches = self._watches.request(self._last_zxid)
        if set_watches is not None:
            self._send(set_watches, lambda reply: None)
        self._listener.on_state(SessionState.CONNECTED)
        outgoing, self._outgoing = self._outgoing, deque()
        for packet, on_reply in outgoing:
            self._send(packet, on_reply)
        self._arm()

    def _set_timeouts(self, timeout_ms: int) -> None:
        """ClientCnxn.onConnected: read time-out 2T/3, ping when half of that went by in silence."""
        read_timeout_ms = timeout_ms * 2 // 3
        self._read_timeout_us = read_timeout_ms * 1000
        self._ping_us = read_timeout_ms // 2 * 1000
        self._connect_timeout_us = timeout_ms * 1000

    # losing the connection

    def _hang_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._from_server is not None:
            self._from_server.close()
            self._from_server = None
        if self._to_server is not None:
            self._to_server.send(END_OF_STREAM, "zk_request")
            self._to_server = None

    def _disconnect(self) -> None:
        """Everything on its way answers CONNECTION_LOSS, and what came meanwhile; then the state
        changes, then it sleeps and tries again (ClientCnxn.cleanAndNotifyState, startConnect)."""
        self._hang_up()
        self._phase = Phase.CLEANING
        self._lane.call_later(CLEANUP_US, self._clean_up)

    @labelled("clean_up")
    def _clean_up(self) -> None:
        # Closed or abandoned during the sleep.
        if self._phase is not Phase.CLEANING:
            return
        self._phase = Phase.SLEEPING
        lost = self._pending + self._outgoing
        self._pending, self._outgoing = deque(), deque()
        self._fail(lost, Code.CONNECTION_LOSS)
        if self._phase is Phase.SLEEPING and self._told_connected and not self._closing:
            self._told_connected = False
            self._listener.on_state(SessionState.DISCONNECTED)
        # A callback of one of these may have closed or abandoned the session.
        if self._phase is not Phase.SLEEPING:
            return
        if self._closing:
            self._end()
            return
        sleep_us = SPIN_DELAY_US
        if self._ever_connected:
            # startConnect sleeps up to 1 s more, but not before its first connection.
            sleep_us += self._link.latency("zk_reconnect", self._link.client)
        self._lane.call_later(sleep_us, self._connect)

    @labelled("fail")
    def _fail(self, requests: deque[tuple[Sent, OnReply]], code: Code) -> None:
        reply = Reply(code)
        for packet, on_reply in requests:
            if not isinstance(packet, CloseSession):
                self._answer(on_reply, reply)

    def _on_closed(self, reply: Reply) -> None:
        self._end()

    @labelled("end")
    def _end(self) -> None:
        if self._phase in _OVER:
            return
        self._phase, self.linked = Phase.CLOSED, False
        self._hang_up()
        waiting = self._pending + self._outgoing
        self._pending, self._outgoing = deque(), deque()
        self._fail(waiting, Code.CONNECTION_LOSS)
        self._listener.on_state(SessionState.CLOSED)

    # hearing

    def _receive(self, packet: ToClient) -> None:
        now = self._now_us()
        silence_us = now - self._last_heard_us
        # After a stop the timed poll is over before the sockets are looked at (EPollSelectorImpl
        # gives up an interrupted wait whose time has run out): a client that wakes after its read
        # time-out drops the connection without reading what had come.
        if self._phase is Phase.CONNECTED and silence_us >= self._read_timeout_us:
            self._disconnect()
            return
        self._last_heard_us = now
        if isinstance(packet, Reply):
            if packet.zxid > 0:
                self._last_zxid = packet.zxid
            request, on_reply = self._pending.popleft()
            # Registered before the callback: it may submit the next request at once.
            if isinstance(request, _WATCHING) and request.watch:
                self._watches.register(request, packet.code)
            on_reply(packet)
        elif isinstance(packet, WatchedEvent):
            if self._watches.take(packet):
                self._listener.on_watch(packet)
        elif isinstance(packet, Connected):
            self._on_connected(packet)
        elif packet is END_OF_STREAM:
            self._disconnect()
        # The loop has woken, so it looks at the clock as well: early, before the timer is due.
        idle = now - self._last_sent_us
        if idle > EARLY_PING_US and self._phase is Phase.CONNECTED:
            early = idle >= self._ping_us - EARLY_PING_US
            if early or idle > MAX_SEND_PING_INTERVAL_US:
                self._ping(now)

    # time

    def _arm(self) -> None:
        """One timer per connection, for whichever of ping and read time-out is due first."""
        if self._timer is not None:
            self._timer.cancel()
        now = self._now_us()
        if self._phase is Phase.CONNECTED:
            due = min(
                self._last_heard_us + self._read_timeout_us, self._last_sent_us + self._ping_us
            )
        else:
            due = self._last_heard_us + self._connect_timeout_us
        self._timer = self._lane.call_later(max(due - now, 0), self._wake)

    @labelled("wake")
    def _wake(self) -> None:
        """The send thread's loop looks at the clock."""
        self._timer = None
        now = self._now_us()
        connected = self._phase is Phase.CONNECTED
        silence_us = self._read_timeout_us if connected else self._connect_timeout_us
        # The timer had fallen due already when the connection went.
        if self._from_server is None:
            return
        if now - self._last_heard_us >= silence_us:
            self._disconnect()
            return
        if connected and now - self._last_sent_us >= self._ping_us:
            self._ping(now)
        self._arm()

    def _ping(self, now: int) -> None:
        self._last_sent_us = now
        assert self._to_server is not None
        self._to_server.send(PING, "zk_request")
