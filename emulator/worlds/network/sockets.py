"""Sockets of one process, on one thread: frames in, frames out, opening and closing of connections.

Callbacks run on this thread; a socket's owner moves them to its own. The broker's end of a
connection delivers one frame and reads the next only after `respond` with nothing left to send, as
Kafka's processors mute a channel. Meanwhile unread bytes stay in the operating system. A frame that
is too long or malformed ends the connection: nothing more is read, and the socket is closed now or
soon (`DelayedCloses`). Each turn reads at most 64 KB of one connection. Owns the limits of all
connections together: their number, bytes and descriptors. Sources: SocketServer.scala,
SimpleMemoryPool.java@2.6.3. Knows frames but no messages.
"""

from __future__ import annotations

import errno
import os
import resource
import selectors
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from emulator.worlds.network.delayed_closes import DelayedCloses
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import MAX_FRAME, length_of

READ = 1 << 16
_HEAD = 4
OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept that do not concern the connection: it waits until there is room for it."""

RESERVED_DESCRIPTORS = 64
"""What clients cannot take: files of the log, and connections to ZooKeeper and other brokers."""

_LOOK_S = 1.0
"""The interval of checks for free descriptors and slow readers. (The end of one of our own
connections is noticed at once.)"""


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Kafka's settings of these names."""

    socket_request_max_bytes: int = MAX_FRAME
    queued_max_request_bytes: int = -1
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    connections_max_idle_ms: int = 600_000


class FramedSocket:
    """One connection. `on_frame` gets payloads; `on_end` gets the reason of its end, once."""

    def __init__(self, sockets: Sockets, end: socket.socket, *, one_at_a_time: bool) -> None:
        self._sockets, self._socket, self._one_at_a_time = sockets, end, one_at_a_time
        self.on_frame: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[str], None] = lambda _: None
        self._in, self._out = bytearray(), bytearray()
        self._muted = self._over = False
        self._watched = 0
        """The events that the selector reports."""
        self._reserved = 0
        """Bytes of the memory for requests that this connection holds: its frame is being read or
        answered."""
        self._waits_for_memory = False
        self.malformed = False
        """Whether it ended because of what came in."""
        self.sent_at_s = 0.0
        """When the other end last took something, on the monotonic clock."""
        host, port = end.getpeername()[:2]
        self.host = str(host)
        self.peer = f"{host}:{port}"

    def start(self) -> None:
        """Any thread: start to deliver frames."""
        self._sockets.do(self._look)

    def write(self, data: bytes) -> None:
        """Any thread."""
        self._sockets.do(lambda: self._write(data))

    def respond(self, data: bytes) -> None:
        """Any thread: the last frame has this response (empty: none), and the next one is read."""
        self._sockets.do(lambda: self._respond(data))

    def refuse(self, error: Malformed) -> None:
        """Any thread: the frame that was delivered last is no request."""
        self._sockets.do(lambda: self._refuse(error))

    def close(self, *, delayed: bool = False) -> None:
        """Any thread: close; unsent bytes are sent if that is possible at once. `delayed`: the
        other end may notice later."""
        self._sockets.do(lambda: self.end("closed here", delayed=delayed))

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not received yet."""
        return len(self._out)

    # -- on the sockets' thread --------------------------------------------------------------------

    def _busy(self) -> bool:
        """A response is pending or being sent: nothing is read before it is sent
        (SocketServer.scala@2.6.3 processCompletedSends)."""
        return self._muted or (self._one_at_a_time and bool(self._out))

    def _interest(self) -> int:
        read = 0 if self._busy() or self._waits_for_memory else selectors.EVENT_READ
        return read | (selectors.EVENT_WRITE if self._out else 0)

    def move(self, ready: int) -> None:
        """The socket is readable or writable."""
        try:
            if ready & selectors.EVENT_WRITE:
                self._flush()
                self._deliver()
            if ready & selectors.EVENT_READ and not self._busy():
                self._read()
        except OSError as error:
            self.end(error.strerror or str(error))
        except Malformed as error:
            self._refuse(error)
        self._look()

    def _refuse(self, error: Malformed) -> None:
        self.malformed = not self._over
        self.end(str(error), delayed=self._one_at_a_time)

    def _look(self) -> None:
        if not self._over and self._watched != (interest := self._interest()):
            self._watched = interest
            self._sockets.watch(self._socket, self.move, interest)

    def _write(self, data: bytes) -> None:
        if self._over:
            return
        if not self._out:
            self.sent_at_s = time.monotonic()
        self._out += data
        self.move(selectors.EVENT_WRITE)
        if self._out and not self._over:
            self._sockets.unsent[self] = None

    def _flush(self) -> None:
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                return
            del self._out[:sent]
            self.sent_at_s = time.monotonic()
        self._sockets.unsent.pop(self, None)

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ)
        except BlockingIOError:
            return
        if not data:
            self.end("closed by the other end")
            return
        self._in += data
        self._deliver()

    def _respond(self, data: bytes) -> None:
        if data:
            self._write(data)
        self._muted = False
        self._release()
        self.deliver()

    def deliver(self) -> None:
        """A response was written, or memory is free again: deliver waiting frames."""
        self._waits_for_memory = False
        try:
            self._deliver()
        except Malformed as error:
            self._refuse(error)
        self._look()

    def _deliver(self) -> None:
        """Deliver complete frames: one, or all."""
        while not (self._over or self._busy() or self._waits_for_memory):
            if len(self._in) < _HEAD:
                return
            most = self._sockets.limits.socket_request_max_bytes
            length = length_of(bytes(self._in[:_HEAD]), most)
            if self._one_at_a_time and not self._reserved:
                if not self._sockets.reserve(self, length):
                    self._waits_for_memory = True
                    return
                self._reserved = length
            if len(self._in) < _HEAD + length:
                return
            # Through a memoryview: slices of a bytearray would copy the frame twice.
            payload = bytes(memoryview(self._in)[_HEAD : _HEAD + length])
            del self._in[: _HEAD + length]
            self._muted = self._one_at_a_time
            self.on_frame(payload)

    def _release(self) -> None:
        reserved, self._reserved = self._reserved, 0
        self._sockets.release(reserved)

    def end(self, why: str, *, delayed: bool = False) -> None:
        """End the connection. `delayed`: its socket is closed when it is its turn."""
        if self._over:
            return
        with suppress(OSError):
            self._flush()
        self._over = True
        self._sockets.forget(self._socket)
        if delayed:
            self._sockets.close_soon(self._socket)
        else:
            self._socket.close()
        self._release()
        self._sockets.ended(self, accepted=self._one_at_a_time)
        self.on_end(why)


class Sockets:
    """The thread and its sockets. `log` receives the reasons why connections are rejected."""

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.limits, self._log = limits or ConnectionLimits(), log
        self._selector = selectors.DefaultSelector()
        self._watched: set[socket.socket] = set()
        """What the selector has. Asking itself is slow: it says no by an exception."""
        self._orders: deque[Callable[[], None]] = deque()
        self._wakes, self._woken = socket.socketpair()
        self._wakes.setblocking(False)
        self._woken.setblocking(False)
        self._running, self._is_waking = True, False
        self._connections: Counter[str] = Counter()
        """Accepted ones, by the host at the other end."""
        self._free_bytes = self.limits.queued_max_request_bytes
        self._waiting: deque[FramedSocket] = deque()
        """Connections that have a request and no memory for it, in the order of their requests."""
        self.unsent: dict[FramedSocket, None] = {}
        """Connections whose other end has not read all that was sent."""
        self._paused: dict[socket.socket, Callable[[int], None]] = {}
        """Listening sockets that accept no connections for now."""
        self._pause_reason = ""
        """Why accepting paused last; logged once."""
        self._closes = DelayedCloses()
        """Connections that have ended, except that the other end does not know it yet."""
        self.watch(self._woken, self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name="sockets", daemon=True)
        self._thread.start()

    def do(self, order: Callable[[], None]) -> None:
        """Any thread: run this on the sockets' thread, in order."""
        self._orders.append(order)
        # This thread takes orders before it waits; and one wake-up is enough for several of them.
        if threading.get_ident() != self._thread.ident and not self._is_waking:
            self._is_waking = True
            with suppress(OSError):
                self._wakes.send(b"\0")

    def listen(
        self, host: str, port: int, accepted: Callable[[FramedSocket], None]
    ) -> socket.socket:
        """Accept connections from now on; raises OSError if the port is in use."""
        # Java's default backlog, which Kafka's acceptor uses up to 3.1 (KIP-764 made it a setting).
        server = socket.create_server((host, port), backlog=50)
        server.setblocking(False)

        def accept(_: int) -> None:
            self._accept(server, accept, accepted)

        self.do(lambda: self.watch(server, accept, selectors.EVENT_READ))
        return server

    def stop_listening(self, server: socket.socket) -> None:
        """Accept no more connections."""

        def stop() -> None:
            self._paused.pop(server, None)
            self.forget(server)
            server.close()

        self.do(stop)

    def connect(
        self, host: str, port: int, timeout_s: float, done: Callable[[FramedSocket | OSError], None]
    ) -> None:
        """Connect on a separate thread: name resolution may block."""

        def run() -> None:
            try:
                end = socket.create_connection((host, port), timeout_s)
                line: FramedSocket | OSError = self._line(end, one_at_a_time=False)
            except OSError as error:
                line = error
            done(line)

        threading.Thread(target=run, name=f"connect-{host}:{port}", daemon=True).start()

    def _line(self, end: socket.socket, *, one_at_a_time: bool) -> FramedSocket:
        end.setblocking(False)
        # Like SocketServer: Nagle's algorithm would delay a response's last segment until the
        # client has acknowledged the others.
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # whose peer is gone ends
        return FramedSocket(self, end, one_at_a_time=one_at_a_time)

    def close(self) -> None:
        """End the thread after everything that was ordered before."""

        def end() -> None:
            self._running = False

        self.do(end)
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        for server in self._paused:
            server.close()
        self._closes.close_all()
        self._selector.close()
        self._wakes.close()

    # -- on the sockets' thread --------------------------------------------------------------------

    def watch(self, end: socket.socket, move: Callable[[int], None], events: int) -> None:
        if not events:
            self.forget(end)
        elif end in self._watched:
            self._selector.modify(end, events, move)
        else:
            self._selector.register(end, events, move)
            self._watched.add(end)

    def forget(self, end: socket.socket) -> None:
        if end in self._watched:
            self._watched.remove(end)
            self._selector.unregister(end)

    def _wake(self, _: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(READ)
        # Before the orders are taken: one that comes now is among them, or wakes again.
        self._is_waking = False

    def _loop(self) -> None:
        look_at_s = 0.0
        while self._running:
            for key, ready in self._selector.select(self._wait_s()):
                # An earlier event of this round may have closed it.
                if key.fileobj in self._watched:
                    key.data(ready)
            while self._orders and self._running:
                self._orders.popleft()()
            self._closes.close_due(time.monotonic())
            if (self._paused or self.unsent) and time.monotonic() >= look_at_s:
                look_at_s = time.monotonic() + _LOOK_S
                self._resume_accepting()
                self._end_slow_readers()

    def _wait_s(self) -> float | None:
        """How long to wait for events; None: until there is one."""
        look_s = _LOOK_S if self._paused or self.unsent else None
        close_s = self._closes.wait_s(time.monotonic())
        if look_s is None or close_s is None:
            return look_s if close_s is None else close_s
        return min(look_s, close_s)

    def close_soon(self, end: socket.socket) -> None:
        """Close a socket of which nothing is read or counted any more."""
        self._closes.add(end, time.monotonic())

    def _end_slow_readers(self) -> None:
        """Close connections whose client has read nothing of a response for
        connections.max.idle.ms: Kafka would close an idle connection by then."""
        idle_since_s = time.monotonic() - self.limits.connections_max_idle_ms / 1000
        for line in [line for line in self.unsent if line.sent_at_s < idle_since_s]:
            idle_ms = self.limits.connections_max_idle_ms
            self._log(f"connection from {line.peer} closed: it read nothing for {idle_ms} ms")
            line.end("its answer was not read")

    # -- memory for requests -----------------------------------------------------------------------

    def reserve(self, line: FramedSocket, size: int) -> bool:
        """Whether a request may be read now. It may while any memory is left, regardless of its
        size (SimpleMemoryPool.java@2.6.3 tryAllocate, not strict)."""
        if self.limits.queued_max_request_bytes <= 0:
            return True
        if self._free_bytes <= 0:
            self._waiting.append(line)
            return False
        self._free_bytes -= size
        return True

    def release(self, size: int) -> None:
        if self.limits.queued_max_request_bytes <= 0 or not size:
            return
        self._free_bytes += size
        waiting, self._waiting = self._waiting, deque()
        for line in waiting:  # without memory they wait again, in the same order
            line.deliver()

    # -- accepting ---------------------------------------------------------------------------------

    def _accept(
        self,
        server: socket.socket,
        accept: Callable[[int], None],
        accepted: Callable[[FramedSocket], None],
    ) -> None:
        most = self.limits.max_connections
        if self._connections.total() >= most:
            self._pause(server, accept, f"there are {most} connections (max.connections)")
            return
        try:
            self._check_descriptors(server)
            end, address = server.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in OUT_OF_RESOURCES:
                if self._closes.close_all():
                    return  # there is room now: the next turn accepts it
                what = error.strerror or str(error)
                if error.errno == errno.EMFILE:
                    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
                    what += f", the process may have {limit} descriptors (ulimit -n)"
                self._pause(server, accept, what)
            return  # otherwise the client has given up meanwhile
        most = self.limits.max_connections_per_ip
        if self._connections[address[0]] >= most:
            self._log(
                f"connection from {address[0]}:{address[1]} closed: there are {most} from this"
                " address (max.connections.per.ip)"
            )
            end.close()
            return
        try:
            line = self._line(end, one_at_a_time=True)
        except OSError:  # it was reset before we looked at it
            end.close()
            return
        self._connections[line.host] += 1
        self._pause_reason = ""
        accepted(line)

    def _check_descriptors(self, server: socket.socket) -> None:
        """Raise EMFILE when only the reserved descriptors are left: the log, ZooKeeper and other
        brokers need them. The lowest free descriptor tells how many are in use."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit == resource.RLIM_INFINITY:
            return
        free = os.dup(server.fileno())
        os.close(free)
        if free >= limit - min(RESERVED_DESCRIPTORS, limit // 4):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def _pause(self, server: socket.socket, accept: Callable[[int], None], why: str) -> None:
        """Leave clients in the backlog until a connection ends or descriptors are free. The socket
        is not watched meanwhile: if ready but not accepted, it would keep this thread busy."""
        self.forget(server)
        self._paused[server] = accept
        if why != self._pause_reason:
            self._pause_reason = why
            self._log(f"no new connections are accepted for now: {why}")

    def _resume_accepting(self) -> None:
        paused, self._paused = self._paused, {}
        for server, accept in paused.items():
            self.watch(server, accept, selectors.EVENT_READ)

    def ended(self, line: FramedSocket, *, accepted: bool) -> None:
        """A connection has ended, and its descriptor is free."""
        self.unsent.pop(line, None)
        if accepted:
            self._connections[line.host] -= 1
            if not self._connections[line.host]:
                del self._connections[line.host]
        self._resume_accepting()
