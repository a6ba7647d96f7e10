"""One client session of the modelled service: behaves like Java's ClientCnxn 3.5.9.

It sends pings, detects silence, drops and renews its connection and sets its watches again. Only
the server's response tells it that the session has expired. It runs on its owner's lane, so it
pauses with the process. Of the server it only knows how to connect.
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
"""StaticHostProvider.next: the sleep before the same server is tried again."""

CLEANUP_US = 100_000
"""ClientCnxnSocketNIO.cleanup sleeps before it fails the requests that were sent or queued."""

EARLY_PING_US = 1_000_000
MAX_SEND_PING_INTERVAL_US = 10_000_000


class Server(Protocol):
    """What a client needs from the service."""

    def accept(
        self, link: Link, to_client: Pipe[ToClient], on_pass: Callable[[ToServer], None]
    ) -> Pipe[ToServer] | None:
        """The server's pipe of a new connection; None: connection refused."""
        ...


class Phase(Enum):
    """The state of ClientCnxn's send thread."""

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
    """The watches that the server's responses have confirmed (ZooKeeper.java ZKWatchManager)."""

    __slots__ = ("child", "data", "exist")

    def __init__(self) -> None:
        self.data: dict[str, None] = {}
        self.exist: dict[str, None] = {}
        self.child: dict[str, None] = {}

    def register(self, request: Request, code: Code) -> None:
        # A watch exists only after the response: a request that fails with CONNECTION_LOSS sets
        # none.
        if isinstance(request, GetChildren):
            if code is Code.OK:
                self.child[request.path] = None
        elif isinstance(request, (Exists, GetData)):
            if code is Code.OK:
                self.data[request.path] = None
            elif code is Code.NO_NODE and isinstance(request, Exists):
                self.exist[request.path] = None

    def take(self, event: WatchedEvent) -> bool:
        """Remove the watches of the event's path; False if there are none (materialize)."""
        tables: tuple[dict[str, None], ...] = (self.data, self.exist)
        if event.type is EventType.NODE_CHILDREN_CHANGED:
            tables = (self.child,)
        elif event.type is EventType.NODE_DELETED:
            # One event ends all watches of the path, and the server sends it once.
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
    """zk.wire.Session over a modelled link."""

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
        self._requested_timeout_ms = timeout_ms
        self._session_id = 0
        self._phase = Phase.SLEEPING
        self._closing = False
        self.linked = False
        self._reported_connected = False
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
        lane.call_later(link.latency("zk_open", link.client), self._connect)

    @property
    def session_id(self) -> int:
        return self._session_id

    def submit(self, request: Request, on_reply: OnReply) -> None:
        """Send now, or after connecting; a session that has ended responds at once, without the
        server."""
        if self._phase is Phase.CONNECTED and not self._closing:
            self._send(request, on_reply)
        elif self._phase in _OVER or self._closing:
            code = Code.SESSION_EXPIRED if self._phase in _OVER else Code.CONNECTION_LOSS
            # Never called from inside submit: the callback runs on the lane, as for a server's
            # response.
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
            # Sent after the waiting requests, once the server has responded to Connect.
            self._outgoing.append((CLOSE_SESSION, self._on_closed))
            self._closing = True
        else:
            self._closing = True
            self._lane.post(self._end)

    def abandon(self) -> None:
        # No closeSession is sent: the server keeps the session and its ephemerals until the
        # timeout.
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
        # Only now: until the next attempt starts, getState still returns CONNECTED.
        self.linked = False
        self._last_sent_us = self._last_heard_us = self._now_us()
        self._from_server = Pipe(self._link, self._lane, Direction.TO_CLIENT, self._receive)
        self._to_server = self._server.accept(self._link, self._from_server, self._on_pass)
        if self._to_server is None:
            self._disconnect()
            return
        self._phase = Phase.CONNECTING
        self._ever_connected = True
        connect = Connect(self._session_id, self._requested_timeout_ms, self._last_zxid)
        self._to_server.send(connect, "zk_connect")
        self._arm()

    def _on_connected(self, answer: Connected) -> None:
        if answer.timeout_ms <= 0:
            # The event first, then the waiting requests (ClientCnxn.onConnected, cleanup).
            self._phase = Phase.EXPIRED
            self._hang_up()
            waiting, self._outgoing = self._outgoing, deque()
            self._listener.on_state(SessionState.EXPIRED)
            self._lane.call_later(CLEANUP_US, partial(self._fail, waiting, Code.SESSION_EXPIRED))
            return
        self._phase = Phase.CONNECTED
        self.linked = self._reported_connected = True
        self._session_id = answer.session_id
        self._set_timeouts(answer.timeout_ms)
        # SetWatches first: no request may get its response before the watches that missed a change
        # have fired.
        set_watches = self._watches.request(self._last_zxid)
        if set_watches is not None:
            self._send(set_watches, lambda reply: None)
        self._listener.on_state(SessionState.CONNECTED)
        outgoing, self._outgoing = self._outgoing, deque()
        for packet, on_reply in outgoing:
            self._send(packet, on_reply)
        self._arm()

    def _set_timeouts(self, timeout_ms: int) -> None:
        """ClientCnxn.onConnected: the read timeout is 2T/3; a ping is sent after half of that
        without traffic."""
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
        """Fail all requests with CONNECTION_LOSS, then report the state, then sleep and reconnect
        (ClientCnxn.cleanAndNotifyState, startConnect)."""
        self._hang_up()
        self._phase = Phase.CLEANING
        self._lane.call_later(CLEANUP_US, self._clean_up)

    @labelled("clean_up")
    def _clean_up(self) -> None:
        # The session was closed or abandoned during the sleep.
        if self._phase is not Phase.CLEANING:
            return
        self._phase = Phase.SLEEPING
        lost = self._pending + self._outgoing
        self._pending, self._outgoing = deque(), deque()
        self._fail(lost, Code.CONNECTION_LOSS)
        if self._phase is Phase.SLEEPING and self._reported_connected and not self._closing:
            self._reported_connected = False
            self._listener.on_state(SessionState.DISCONNECTED)
        # One of these callbacks may have closed or abandoned the session.
        if self._phase is not Phase.SLEEPING:
            return
        if self._closing:
            self._end()
            return
        sleep_us = SPIN_DELAY_US
        if self._ever_connected:
            # startConnect sleeps up to 1 s more, except before the first connection.
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
        # After a stop, the timed poll ends before the sockets are read (EPollSelectorImpl gives up
        # an interrupted wait whose time is over). A client that wakes after its read timeout thus
        # drops the connection without reading the packets that have arrived.
        if self._phase is Phase.CONNECTED and silence_us >= self._read_timeout_us:
            self._disconnect()
            return
        self._last_heard_us = now
        if isinstance(packet, Reply):
            if packet.zxid > 0:
                self._last_zxid = packet.zxid
            request, on_reply = self._pending.popleft()
            # Registered before the callback, which may submit the next request at once.
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
        # The send thread is awake, so it also checks whether a ping is due, before the timer.
        idle = now - self._last_sent_us
        if idle > EARLY_PING_US and self._phase is Phase.CONNECTED:
            early = idle >= self._ping_us - EARLY_PING_US
            if early or idle > MAX_SEND_PING_INTERVAL_US:
                self._ping(now)

    # time

    def _arm(self) -> None:
        """One timer per connection, for the earlier of ping and read timeout."""
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
        """The send thread's loop checks the clock."""
        self._timer = None
        now = self._now_us()
        connected = self._phase is Phase.CONNECTED
        silence_us = self._read_timeout_us if connected else self._connect_timeout_us
        # The timer was already due when the connection was lost.
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
