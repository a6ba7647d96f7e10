"""Sockets of one process, on one thread: frames in, frames out, connections made and lost.

Call-backs are made on this thread; a socket's owner moves them to its own. The broker's end of a
connection delivers one frame and reads the next only after `read_on`, with nothing left to send, as
Kafka's processors mute a channel. Meanwhile unread bytes stay in the operating system. A frame that
is too long or malformed ends the connection. Knows frames, no message.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import length_of

READ = 1 << 16
_HEAD = 4


class FramedSocket:
    """One connection. `on_frame` gets payloads, `on_end` once why it is over."""

    def __init__(self, sockets: Sockets, end: socket.socket, *, one_at_a_time: bool) -> None:
        self._sockets, self._socket, self._one_at_a_time = sockets, end, one_at_a_time
        self.on_frame: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[str], None] = lambda _: None
        self._in, self._out = bytearray(), bytearray()
        self._muted = self._over = False
        self.malformed = False
        """Whether it ended because of what came in."""
        host, port = end.getpeername()[:2]
        self.peer = f"{host}:{port}"

    def start(self) -> None:
        """Any thread: from now on frames are delivered."""
        self._sockets.do(lambda: self._sockets.watch(self._socket, self.move, self._interest()))

    def write(self, data: bytes) -> None:
        """Any thread."""
        self._sockets.do(lambda: self._write(data))

    def read_on(self) -> None:
        """Any thread: the frame that was delivered last is answered."""
        self._sockets.do(self._read_on)

    def close(self) -> None:
        """Any thread: what is still to be written is written if it can be at once."""
        self._sockets.do(lambda: self._end("closed here"))

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not taken yet."""
        return len(self._out)

    # -- on the sockets' thread --------------------------------------------------------------------

    def _busy(self) -> bool:
        """An answer is to come, or is on its way: nothing is read before it is sent
        (SocketServer.scala@2.6.3 processCompletedSends)."""
        return self._muted or (self._one_at_a_time and bool(self._out))

    def _interest(self) -> int:
        read = 0 if self._busy() else selectors.EVENT_READ
        return read | (selectors.EVENT_WRITE if self._out else 0)

    def move(self, ready: int) -> None:
        """The socket can be read or written."""
        try:
            if ready & selectors.EVENT_WRITE:
                self._flush()
                self._deliver()
            if ready & selectors.EVENT_READ and not self._busy():
                self._read()
        except OSError as error:
            self._end(error.strerror or str(error))
        except Malformed as error:
            self._refuse(error)
        self._look()

    def _refuse(self, error: Malformed) -> None:
        self.malformed = True
        self._end(str(error))

    def _look(self) -> None:
        if not self._over:
            self._sockets.watch(self._socket, self.move, self._interest())

    def _write(self, data: bytes) -> None:
        if self._over:
            return
        self._out += data
        self.move(selectors.EVENT_WRITE)

    def _flush(self) -> None:
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                return
            del self._out[:sent]

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ)
        except BlockingIOError:
            return
        if not data:
            self._end("closed by the other end")
            return
        self._in += data
        self._deliver()

    def _read_on(self) -> None:
        self._muted = False
        try:
            self._deliver()
        except Malformed as error:
            self._refuse(error)
        self._look()

    def _deliver(self) -> None:
        """Whole frames, one or all."""
        while not (self._over or self._busy()) and len(self._in) >= _HEAD:
            length = length_of(bytes(self._in[:_HEAD]))
            if len(self._in) < _HEAD + length:
                return
            payload = bytes(self._in[_HEAD : _HEAD + length])
            del self._in[: _HEAD + length]
            self._muted = self._one_at_a_time
            self.on_frame(payload)

    def _end(self, why: str) -> None:
        if self._over:
            return
        with suppress(OSError):
            self._flush()
        self._over = True
        self._sockets.forget(self._socket)
        self._socket.close()
        self.on_end(why)


class Sockets:
    """The thread, and what it watches."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._orders: deque[Callable[[], None]] = deque()
        self._wakes, self._woken = socket.socketpair()
        self._wakes.setblocking(False)
        self._woken.setblocking(False)
        self._running = True
        self.watch(self._woken, self._wake, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name="sockets", daemon=True)
        self._thread.start()

    def do(self, order: Callable[[], None]) -> None:
        """Any thread: have it done on the sockets' thread, in order."""
        self._orders.append(order)
        with suppress(BlockingIOError, OSError):
            self._wakes.send(b"\0")

    def listen(
        self, host: str, port: int, accepted: Callable[[FramedSocket], None]
    ) -> socket.socket:
        """Accept from now on; OSError when somebody else does."""
        server = socket.create_server((host, port), backlog=50)
        server.setblocking(False)

        def accept(_: int) -> None:
            with suppress(OSError):
                end, _address = server.accept()
                accepted(self._line(end, one_at_a_time=True))

        self.do(lambda: self.watch(server, accept, selectors.EVENT_READ))
        return server

    def stop_listening(self, server: socket.socket) -> None:
        """Nobody is accepted any more."""

        def stop() -> None:
            self.forget(server)
            server.close()

        self.do(stop)

    def connect(
        self, host: str, port: int, timeout_s: float, done: Callable[[FramedSocket | OSError], None]
    ) -> None:
        """On a thread of its own: names are looked up there, which may take its time."""

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
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # whose peer is gone ends
        return FramedSocket(self, end, one_at_a_time=one_at_a_time)

    def close(self) -> None:
        """The thread ends; what was ordered before is done."""

        def end() -> None:
            self._running = False

        self.do(end)
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()
        self._wakes.close()

    # -- on the sockets' thread --------------------------------------------------------------------

    def watch(self, end: socket.socket, move: Callable[[int], None], events: int) -> None:
        known = end in self._selector.get_map()
        if not events:
            self.forget(end)
        elif known:
            self._selector.modify(end, events, move)
        else:
            self._selector.register(end, events, move)

    def forget(self, end: socket.socket) -> None:
        if end in self._selector.get_map():
            self._selector.unregister(end)

    def _wake(self, _: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(READ)

    def _loop(self) -> None:
        while self._running:
            for key, ready in self._selector.select():
                if key.fileobj in self._selector.get_map():
                    key.data(ready)
            while self._orders and self._running:
                self._orders.popleft()()
