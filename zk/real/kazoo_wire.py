"""Implements `zk.wire` on a real ZooKeeper server through kazoo; the only file that imports it.

Kazoo does not behave like Kafka's client (read in kazoo 2.11). On any disconnect it fires and
forgets every watch and never sends SetWatches. After expiry it opens a new session by itself, and
sends queued requests in it. Its thread pings even if the process should be paused. It makes four
selectors and as many system calls per request. So we keep its client, its retry and its handshake.
We replace the loop inside one connection (`_connect_attempt`), with the rules and times of the Java
client (ClientCnxn.java@3.5.9), and the handler, which waits at a `Gate`.

Threads: one thread of kazoo's per session does its input and output. The owner's thread puts
requests into a deque. If the session's thread is only waiting, the owner's thread sends them
itself, inside the gate; otherwise it wakes the session's thread. Every event reaches the owner
through `Lane.post`, in the server's order. Knows no emulator.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn, TypeVar

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, SessionExpiredError
from kazoo.handlers.utils import create_socket_pair
from kazoo.protocol.connection import STOP_CONNECTING, ConnectionHandler
from kazoo.protocol.serialization import CloseInstance
from kazoo.retry import ForceRetryError, KazooRetry

from zk.client.client_times import ClientTimes
from zk.errors import Code
from zk.ops import (
    EventType,
    Exists,
    GetChildren,
    GetData,
    Reply,
    Request,
    SessionState,
    WatchedEvent,
)
from zk.real import jute
from zk.real.link_watch import CHUNK, LinkWatch
from zk.real.pause_gate import Gate
from zk.real.server import Address, SessionTimeoutClamped
from zk.wire import Lane, Listener, OnReply

_log = logging.getLogger("zk.real.kazoo_wire")
# The owner is notified of a lost connection; kazoo must not print it.
_log.addHandler(logging.NullHandler())

T = TypeVar("T")

_Sockets = list[socket.socket]
_SET_WATCHES_MAX = 1000  # paths in one SetWatches; the Java client limits it to 128 KB


class _Handler:
    """Kazoo's port to threads and sockets, with the gate in every wait. No worker threads:
    callbacks run on the owner's lane. `sleep_func` returns when the session ends."""

    name = "zk_gate_handler"
    timeout_exception = TimeoutError
    running = False

    def __init__(self, gate: Gate, thread_name: str) -> None:
        self.gate, self._thread_name = gate, thread_name
        self.connection: _Connection
        self.watch: LinkWatch | None = None
        self._ended = threading.Event()
        self.sleep_func = self._ended.wait
        self.thread: threading.Thread

    def stop_sleeping(self) -> None:
        self._ended.set()

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def event_object(self) -> threading.Event:
        return threading.Event()

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        pair: tuple[socket.socket, socket.socket] = create_socket_pair(socket)
        for end in pair:
            end.setblocking(False)
        return pair

    def spawn(self, function: Callable[[], None]) -> threading.Thread:
        self.thread = threading.Thread(target=function, name=self._thread_name, daemon=True)
        self.thread.start()
        return self.thread

    def create_connection(
        self, address: tuple[str, int], timeout: float, **_: object
    ) -> socket.socket:
        """Connect once the link is whole. Kazoo's own connect cannot be interrupted: a server that
        does not answer a SYN would hold an abandoned session for the whole timeout. Raises
        OSError."""
        if not self.gate.wait_for_link(self.connection, timeout):
            raise TimeoutError("connect timed out")
        link = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        try:
            link.setblocking(False)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            error = link.connect_ex(address)
            if error == errno.EINPROGRESS:
                if not self.select([], [link], [], timeout)[1]:
                    raise TimeoutError("connect timed out")
                error = link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
        except BaseException:
            link.close()
            raise
        return link

    def select(
        self, readers: _Sockets, writers: _Sockets, _: _Sockets, timeout: float
    ) -> tuple[_Sockets, _Sockets, _Sockets]:
        """For connecting and kazoo's handshake only: one socket, one direction."""
        events = select.EPOLLIN if readers else select.EPOLLOUT
        deadline = time.monotonic() + timeout
        while not self.wait((readers or writers)[0], events, deadline - time.monotonic()):
            if time.monotonic() >= deadline:
                return [], [], []
        return readers, writers, []

    def wait(self, link: socket.socket, events: int, timeout_s: float) -> int:
        """Wait outside of the gate for the link, a wake-up, or the timeout. Returns the link's
        events.

        Raises ConnectionDropped if the session was abandoned meanwhile.
        """
        deadline = time.monotonic() + timeout_s
        ready, paused = self._poll(link, events, timeout_s)
        while paused:  # SIGCONT interrupts a poll; EPollSelectorImpl continues only if time is left
            left_s = deadline - time.monotonic()
            ready, paused = self._poll(link, events, left_s) if left_s > 0 else (0, False)
        if self.connection.abandoned:
            raise ConnectionDropped("abandoned")
        return 0 if self.gate.is_cut else ready

    def _poll(self, link: socket.socket, events: int, timeout_s: float) -> tuple[int, bool]:
        if self.watch is None:
            self.watch = LinkWatch(link, self.connection._read_sock)
        self.watch.expect(0 if self.gate.is_cut else events)
        self.gate.leave()
        try:
            ready = self.watch.poll(max(0.0, timeout_s))
        finally:
            paused = self.gate.enter(self.connection)
        return ready, paused


class _Client(KazooClient):  # type: ignore[misc]
    """Kazoo's client, used only for a session's id, password and last zxid."""

    def _session_callback(self, state: object) -> None:
        """Overridden because kazoo would fire and forget the watches here, and open a new session
        after expiry."""
        self._state = state


class _Entry(msgspec.Struct, gc=False):
    """A pending request; `request` None: closeSession; `xid` 0: not sent yet."""

    request: Request | None
    on_reply: OnReply
    generation: int
    xid: int = 0


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Kazoo's connection with the Java client's loop: everything queued is one write, all available
    input is read at once; pings and timeouts as in ClientCnxn."""

    _socket: socket.socket | None
    _read_sock: socket.socket
    _write_sock: socket.socket

    def __init__(self, session: KazooSession, client: _Client, handler: _Handler) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=_log)
        self.session, self.gate = session, handler.gate
        self._asleep = False
        self._xid = 0
        self._out = bytearray()
        self._in = bytearray()
        self._last_received_s = self._last_sent_s = 0.0
        self._attempted = False
        self._read_timeout_s = 0.0

    @property
    def abandoned(self) -> bool:
        return self.session.abandoned

    def wake(self) -> None:
        try:
            self._write_sock.send(b"\0")
        except (OSError, AttributeError):
            pass  # the connection has ended, or has enough pending wake-ups

    def send_or_wake(self) -> None:
        """Called by the owner's thread after queueing. If the connection's own thread is only
        waiting, send at once, which saves a thread switch."""
        if not self._asleep:
            return
        if self.gate.enter_if_open():
            try:
                self._encode_queue()
                self._send()
            except OSError:
                pass  # the connection's thread will fail in the same way
            finally:
                self.gate.leave()
            if not self._out and not self.session.queue:
                return
        self._asleep = False
        self.wake()

    def hang_up(self) -> None:
        """Close the TCP connection without closeSession. Any thread that holds the gate may call
        this."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # not connected

    def zk_loop(self) -> None:
        """The thread's main loop: one connection after the other, until the session ends."""
        self.gate.join(self)
        try:
            super().zk_loop()
        except Exception as error:
            self.session.fail(error)
            raise
        finally:
            self.gate.part(self)
            self.session.lose_connection()
            self.session.end(SessionState.CLOSED)
            self.close()

    def _connect_loop(self, retry: KazooRetry) -> object:
        """A failed attempt has failed all waiting requests. Later ones wait for the next attempt.
        There was no attempt if no name resolved."""
        self._attempted = False
        try:
            return super()._connect_loop(retry)
        except ForceRetryError:
            if not self._attempted:
                self.session.lose_connection()
            raise

    def _connect_attempt(self, host: str, hostip: str, port: int, retry: KazooRetry) -> object:
        """One connection from beginning to end (kazoo has its loop in this method)."""
        self._attempted = True
        retry.reset()  # no back-off: the Java client's delay is constant
        self.session.linked = False
        self.gate.enter(self)
        try:
            self._open(host, hostip, port)
            self._serve()
        except SessionExpiredError:
            self.session.end(SessionState.EXPIRED)
        except SessionTimeoutClamped as error:
            self._submit(CloseInstance, 1.0, xid=1)
            self.session.fail(error)
            self.session.end(SessionState.CLOSED)
        except (ConnectionDropped, OSError, *_GARBAGE) as error:
            _log.info("connection of session %#x ended: %s", self.session.session_id, error)
            self.session.lose_connection()
        finally:
            if self.handler.watch is not None:
                self.handler.watch.close()
                self.handler.watch = None
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            self.gate.leave()
        return STOP_CONNECTING if self.client._stopped.is_set() else None

    def _open(self, host: str, hostip: str, port: int) -> None:
        """Kazoo's handshake; then SetWatches, before any request."""
        read_timeout_ms, _ = self._connect(host, hostip, port)
        self._read_timeout_s = read_timeout_ms / 1000
        self._out.clear()
        self._in.clear()
        session = self.session
        granted_ms = round(read_timeout_ms * 3 / 2)  # kazoo returns two thirds of the timeout
        if granted_ms != session.timeout_ms:
            raise SessionTimeoutClamped(session.timeout_ms, granted_ms)
        if session.session_id not in (0, self.client._session_id):
            raise SessionExpiredError  # no request may be sent in another session
        for message in session.connected(self.client._session_id, self.client.last_zxid):
            self._out += jute.frame(message)

    def _serve(self) -> None:
        """Run until closeSession is answered; raises if the connection breaks."""
        session = self.session
        self._last_received_s = self._last_sent_s = time.monotonic()
        while session.over is None:
            self._encode_queue()
            self._ping_if_due()
            self._send()
            # From here on the owner's thread sends by itself, or wakes this thread. Requests that
            # it queued between the encoding above and this line are still ours, so check the queue
            # once more.
            self._asleep = True
            ping = min(self._read_timeout_s / 2, session.times.ping_max_ms / 1000 + 0.001)
            next_s = min(self._last_sent_s + ping, self._last_received_s + self._read_timeout_s)
            patience_s = 0 if session.queue else next_s - time.monotonic()
            events = select.EPOLLIN | select.EPOLLOUT if self._out else select.EPOLLIN
            try:
                ready = self.handler.wait(self._socket, events, patience_s)
            finally:
                self._asleep = False
            if ready & ~select.EPOLLOUT:
                self._receive()

    def _ping_if_due(self) -> None:
        """ClientCnxn.SendThread.run@3.5.9: also raises if the server was silent for too long."""
        now, times = time.monotonic(), self.session.times
        if now - self._last_received_s >= self._read_timeout_s:
            raise ConnectionDropped("nothing heard from the server")
        idle = now - self._last_sent_s
        slack = times.ping_slack_ms / 1000
        until_ping = self._read_timeout_s / 2 - idle - (slack if idle > slack else 0)
        if until_ping <= 0 or idle > times.ping_max_ms / 1000:
            self._out += _PING
            self._last_sent_s = now

    def _encode_queue(self) -> None:
        session, queue, out = self.session, self.session.queue, self._out
        while queue:
            entry = queue.popleft()
            if entry.generation != session.generation:
                session.answer(entry, Reply(Code.SESSION_EXPIRED))
                continue
            entry.xid = self._xid = self._xid % 0x7FFFFFFF + 1
            out += jute.frame(session.encode(entry))
            session.pending.append(entry)

    def _send(self) -> None:
        if self._out and not self.gate.is_cut:
            assert self._socket is not None
            try:
                del self._out[: self._socket.send(self._out)]
            except BlockingIOError:
                return
            self._last_sent_s = time.monotonic()

    def _receive(self) -> None:
        assert self._socket is not None
        try:
            chunk = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            raise ConnectionDropped("the server closed the connection")
        self._last_received_s = time.monotonic()
        self._in += chunk
        for message in jute.take_frames(self._in):
            xid, zxid = _HEADER.unpack_from(message)
            if xid == jute.XID_NOTIFICATION:
                self.session.fire(message)
            elif xid not in (jute.XID_PING, jute.XID_SET_WATCHES):
                if zxid > 0:
                    # SetWatches contains this zxid: watches fire for later changes.
                    self.client.last_zxid = zxid
                entry = self.session.pending.popleft()
                if entry.xid != xid:
                    raise ConnectionDropped(f"answer {xid} instead of {entry.xid}")
                self.session.take_reply(entry, message)


_HEADER = struct.Struct("!iq")  # xid, zxid
_PING = jute.frame(struct.pack("!ii", jute.XID_PING, jute.OpCode.PING))
# Exceptions caused by malformed input, in our code and in kazoo's handshake.
_GARBAGE = (jute.Malformed, struct.error, IndexError)


class KazooSession:
    """One ZooKeeper session on a real server (`zk.wire.Session`); made by `KazooService`.

    `submit`, `close` and `abandon` belong to the owner's thread. As in the Java client, requests
    without a connection wait for the next connection attempt, and complete with CONNECTION_LOSS if
    it fails. After the session's end they complete with SESSION_EXPIRED.
    """

    def __init__(
        self,
        servers: Address,
        thread_name: str,
        timeout_ms: int,
        lane: Lane,
        listener: Listener,
        gate: Gate,
        times: ClientTimes,
        soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._soon = soon
        self.timeout_ms, self.times, self.session_id = timeout_ms, times, 0
        self.queue: deque[_Entry] = deque()
        self.pending: deque[_Entry] = deque()
        self.generation = 1
        self.over: Code | None = None
        self.abandoned = self.linked = False
        self._lane, self._listener, self._gate = lane, listener, gate
        self._chroot = servers.chroot
        self._state: SessionState | None = None
        self.closing = False
        self.answering = 0
        """The xid of the request whose reply is being delivered; 0: that was never sent."""
        # The server's paths, in the order in which watches were set.
        self._watches: dict[str, dict[str, None]] = {"data": {}, "exist": {}, "child": {}}
        self._handler = _Handler(gate, thread_name)
        sleep = self._handler.sleep_func
        # Endless; the delay is wait + [0, jitter), as of the Java client with one server in its
        # list.
        half_s = times.reconnect_jitter_ms / 2000
        delay_s = times.reconnect_wait_ms / 1000 + half_s
        reconnect = KazooRetry(
            -1, delay=delay_s, backoff=1, max_jitter=half_s / delay_s, sleep_func=sleep
        )
        self._client = _Client(
            hosts=servers.hosts,
            timeout=timeout_ms / 1000,
            handler=self._handler,
            connection_retry=reconnect,
            command_retry=KazooRetry(max_tries=0, sleep_func=sleep),
            logger=_log,
        )
        self._client._session_timeout = timeout_ms
        self._connection = _Connection(self, self._client, self._handler)
        self._client._connection = self._handler.connection = self._connection
        self._client.start_async()

    @property
    def password(self) -> bytes:
        """The server's secret that allows a client to take this session over."""
        return bytes(self._client._session_passwd)

    # ---- the owner's side ----

    def submit(self, request: Request, on_reply: OnReply) -> None:
        entry = _Entry(request, on_reply, self.generation)
        if self.over is not None or self.closing:
            self.answer(entry, Reply(self.over or Code.CONNECTION_LOSS))
            return
        self.queue.append(entry)
        self._soon(self._connection.send_or_wake)
        if (
            entry.generation != self.generation
        ):  # the session ended meanwhile: drain the queue again
            self._drain(self.queue, Code.SESSION_EXPIRED)

    def close(self) -> None:
        if self.over is None and not self.closing:
            self.closing = True
            self.queue.append(_Entry(None, lambda _: None, self.generation))
            self._stop_connecting()
            self._connection.wake()

    def abandon(self) -> None:
        def die() -> None:
            self.abandoned = True
            self._stop_connecting()
            self._connection.hang_up()

        self._gate.end(self._connection, die)

    def join(self, timeout_s: float) -> bool:
        """Wait until the thread and sockets of a closed, abandoned or expired session are gone."""
        self._handler.thread.join(timeout_s)
        return not self._handler.thread.is_alive()

    def _stop_connecting(self) -> None:
        self._client._stopped.set()
        self._handler.stop_sleeping()

    # ---- the connection's side: its thread, inside the gate ----

    def connected(self, session_id: int, last_zxid: int) -> Iterable[bytes]:
        """The server answered the handshake. Returns the SetWatches messages that must be sent
        first."""
        self.session_id, self.linked = session_id, True
        self._turn(SessionState.CONNECTED)
        watches = [(kind, path) for kind, paths in self._watches.items() for path in paths]
        for at in range(0, len(watches), _SET_WATCHES_MAX):
            part = watches[at : at + _SET_WATCHES_MAX]
            lists = ([p for k, p in part if k == kind] for kind in ("data", "exist", "child"))
            yield jute.encode_set_watches(last_zxid, *lists)

    def lose_connection(self) -> None:
        """Fail all requests that were sent, or that waited for this attempt, once each."""
        self._drain(self.pending, Code.CONNECTION_LOSS)
        self._drain(self.queue, Code.CONNECTION_LOSS)
        if self._state is SessionState.CONNECTED and not self._client._stopped.is_set():
            self._turn(SessionState.DISCONNECTED)

    def end(self, state: SessionState) -> None:
        """No connection will be made again, and this is the last state reported."""
        if self.over is None:
            self.generation += 1
            self.over = Code.SESSION_EXPIRED
            self._stop_connecting()
            self._turn(state)
            self._drain(self.pending, self.over)
            self._drain(self.queue, self.over)

    def fail(self, error: Exception) -> None:
        """Raise the error on the owner's lane, which ends its world."""

        def raise_error() -> NoReturn:
            raise error

        self._post(raise_error)

    def answer(self, entry: _Entry, reply: Reply) -> None:
        if entry.request is not None:
            self._post(partial(self._answered, entry, reply))

    def take_reply(self, entry: _Entry, message: bytes) -> None:
        request = entry.request
        if request is None:
            self.end(SessionState.CLOSED)
            return
        reply = jute.decode_reply(request, message, self._chroot)
        if isinstance(request, Exists | GetData | GetChildren) and request.watch:
            # As in the Java client, a watch counts once its request is answered, and `exists` also
            # leaves one for a missing znode.
            path = jute.outside(self._chroot, request.path)
            if reply.code is Code.OK:
                kind = "child" if isinstance(request, GetChildren) else "data"
                self._watches[kind][path] = None
            elif reply.code is Code.NO_NODE and isinstance(request, Exists):
                self._watches["exist"][path] = None
        self._post(partial(self._answered, entry, reply))

    def fire(self, message: bytes) -> None:
        """A watch event; reported only if one of our watches is on that path, as in the Java
        client."""
        number, path = jute.decode_watch_event(message)
        if number in _FIRES:
            kind, tables = _FIRES[number]
            held = [self._watches[table].pop(path, self) is None for table in tables]
            if any(held):
                event = WatchedEvent(kind, jute.inside(self._chroot, path))
                self._post(partial(self._deliver, self._listener.on_watch, event))

    def encode(self, entry: _Entry) -> bytes:
        if entry.request is None:
            return jute.encode_close(entry.xid)
        return jute.encode_request(entry.xid, entry.request, self._chroot)

    def _turn(self, state: SessionState) -> None:
        if state is not self._state:
            self._state = state
            self._post(partial(self._deliver, self._listener.on_state, state))

    def _drain(self, entries: deque[_Entry], code: Code) -> None:
        reply = Reply(code)
        while entries:
            try:
                self.answer(entries.popleft(), reply)
            except IndexError:
                return  # the other thread was faster

    def _post(self, action: Callable[[], None]) -> None:
        if not self.abandoned:
            self._lane.post(action)

    def _answered(self, entry: _Entry, reply: Reply) -> None:
        self.answering = entry.xid
        self._deliver(entry.on_reply, reply)

    def _deliver(self, deliver: Callable[[T], None], what: T) -> None:
        """Run on the owner's thread, as `abandon` does, after which nothing is delivered."""
        if not self.abandoned:
            deliver(what)


_FIRES = {
    1: (EventType.NODE_CREATED, ("data", "exist")),
    2: (EventType.NODE_DELETED, ("data", "exist", "child")),
    3: (EventType.NODE_DATA_CHANGED, ("data", "exist")),
    4: (EventType.NODE_CHILDREN_CHANGED, ("child",)),
}
