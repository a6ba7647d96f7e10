"""A proxy on loopback between one client and its ZooKeeper server, which reads along.

Owns what passes on the wire: requests are told as `zk.ops` structs when they pass, replies with
their code and the time they took. A tap can be cut (bytes stop both ways, connections stay), healed
and delayed. Bytes are never changed; where they are not ZooKeeper's the tap goes on blind and
counts them. One thread serves all taps and calls the observer. Knows no sessions and no kazoo.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol

import msgspec

from zk import jute
from zk.errors import Code
from zk.ops import Multi, Request, name_of
from zk.server import HOST, Address
from zk.wire import Way, When

_CHUNK = 64 * 1024
_HELD_MAX = 1 << 20  # bytes on their way in one direction before the source must wait
_FRAME_MAX = 1 << 26
_CLOSED_BY_THE_OTHER = (7, 8)  # TCP_CLOSE, TCP_CLOSE_WAIT of linux/tcp_states.h
_PATIENCE_S = 10.0


class TapObserver(Protocol):
    """Who is told; called on the taps' thread, must not block. A string stands for what is no
    request of the client's own: `connect`, `setWatches`, `closeSession`, `auth`. Pings and watch
    events are not told."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed; `at_us` is the time on the taps' clock."""
        ...

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """Its answer passed, `elapsed_us` later. A Multi has the code of its failed operation."""
        ...


class _Asked(msgspec.Struct):
    """A request whose answer has not passed yet."""

    xid: int
    request: Request | str
    at_us: int
    answer_is_lost: bool


class _Break(Exception):
    """The connection breaks here: of the bytes just read only the first `kept` pass."""

    def __init__(self, kept: int = 0) -> None:
        super().__init__(kept)
        self.kept = kept


class _Reader:
    """What one connection says, in both directions, read as it comes in pieces."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._from_client, self._from_server = bytearray(), bytearray()
        self._connected = self._answered = self._blind = False
        self._pending: deque[_Asked] = deque()

    @property
    def loses_an_answer(self) -> bool:
        """One of the answers that are still to come is not to pass."""
        return any(asked.answer_is_lost for asked in self._pending)

    def sent(self, data: bytes) -> None:
        self._read(self._from_client, data, self._request)

    def answered(self, data: bytes) -> None:
        self._read(self._from_server, data, self._reply)

    def _read(self, stream: bytearray, data: bytes, take: Callable[[bytes], None]) -> None:
        """Raises _Break where the tap is to break the connection."""
        if self._blind:
            self._tap.blind_bytes += len(data)
            return
        kept = -len(stream)  # of these bytes, those before the message at hand
        stream += data
        try:
            for message in jute.take_frames(stream, _FRAME_MAX):
                take(message)
                kept += 4 + len(message)
        except jute.Malformed:
            self._blind = True
            self._tap.blind_bytes += len(stream)
        except _Break:
            raise _Break(max(0, kept)) from None

    def _request(self, message: bytes) -> None:
        if not self._connected:
            jute.decode_connect(message)
            self._connected = True
            xid, request = 0, "connect"  # type: tuple[int, Request | str]
        else:
            xid, request = jute.decode_request(message)
        if request == "ping":
            self._tap.pings += 1
            return
        at_us = self._tap.now_us()
        told = _inside(request, self._tap.chroot)
        self._tap.observer.on_request(at_us, self._tap.client, told)
        drop = self._tap.take_drop(told)
        if drop == "before":
            raise _Break
        self._pending.append(_Asked(xid, told, at_us, drop == "after"))

    def _reply(self, message: bytes) -> None:
        if not self._answered:
            self._answered = True
            alive = jute.decode_connected(message).timeout_ms > 0
            self._tell(0, Code.OK if alive else Code.SESSION_EXPIRED)
            return
        header = jute.decode_reply_header(message)
        if header.xid not in (jute.XID_NOTIFICATION, jute.XID_PING):
            self._tell(header.xid, jute.code_of(header.error), message)

    def _tell(self, xid: int, code: Code, message: bytes = b"") -> None:
        if not self._pending or self._pending[0].xid != xid:
            raise jute.Malformed(f"an answer to {xid}, which was not asked")
        asked, tap = self._pending.popleft(), self._tap
        if asked.answer_is_lost:
            raise _Break
        if isinstance(asked.request, Multi) and code is Code.OK:
            code = jute.decode_reply(asked.request, message).code
        tap.observer.on_reply(tap.client, asked.request, code, tap.now_us() - asked.at_us)


class _Flow:
    """One direction of a connection: bytes on their way, the oldest first."""

    def __init__(
        self, way: Way, source: socket.socket, sink: socket.socket, read: Callable[[bytes], None]
    ) -> None:
        self.way, self.source, self.sink, self._read = way, source, sink, read
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._ready = bytearray()
        self._held = self._last_due_us = 0
        self._ended = False
        self.breaks = self.finished = False

    @property
    def wants_to_read(self) -> bool:
        return not (self._ended or self.breaks) and self._held < _HELD_MAX

    @property
    def wants_to_write(self) -> bool:
        return bool(self._ready)

    @property
    def due_us(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def take_in(self, now_us: int, delay_us: int) -> bytes:
        """What came. Raises OSError when the source was reset."""
        try:
            data = self.source.recv(_CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self._ended = True
            return b""
        self._held += len(data)
        self._last_due_us = max(self._last_due_us, now_us + delay_us)
        self._waiting.append((self._last_due_us, data))
        return data

    def read(self, data: bytes) -> None:
        """Read along; where the connection is to break, the last bytes do not all pass."""
        try:
            self._read(data)
        except _Break as here:
            self.breaks = True
            if self._waiting and self._waiting[-1][1] is data:
                self._waiting[-1] = (self._last_due_us, data[: here.kept])
                self._held -= len(data) - here.kept

    def pass_on(self, now_us: int) -> None:
        """Send what is due; behind the last byte, its end. Raises OSError."""
        while self._waiting and self._waiting[0][0] <= now_us:
            self._ready += self._waiting.popleft()[1]
        if self._ready:
            try:
                sent = self.sink.send(self._ready)
            except BlockingIOError:
                return
            self._held -= sent
            del self._ready[:sent]
        if self.breaks and not self._held:
            raise ConnectionAbortedError("broken by the tap")
        if self._ended and not self._held and not self.finished:
            self.finished = True
            self.sink.shutdown(socket.SHUT_WR)


class _Line:
    """One connection of the client's and its twin to the server."""

    def __init__(self, tap: Tap, client: socket.socket, server: socket.socket) -> None:
        reader = self._reader = _Reader(tap)
        self.tap, self.sockets = tap, (client, server)
        self.flows = (
            _Flow(Way.TO_SERVER, client, server, reader.sent),
            _Flow(Way.TO_CLIENT, server, client, reader.answered),
        )

    def events_of(self, end: socket.socket) -> int:
        """What the selector shall wait for at this socket."""
        events = 0
        for flow in self.flows:
            if flow.way in self.tap.cut_ways:
                continue
            if flow.source is end and flow.wants_to_read:
                events |= selectors.EVENT_READ
            if flow.sink is end and flow.wants_to_write:
                events |= selectors.EVENT_WRITE
        return events

    @property
    def holds_something(self) -> bool:
        """There are bytes that may go on at a later time only."""
        return any(flow.due_us is not None for flow in self.flows)

    def next_due_us(self) -> int | None:
        """When the oldest of what is delayed may go on."""
        flows = [flow for flow in self.flows if flow.way not in self.tap.cut_ways]
        return min((flow.due_us for flow in flows if flow.due_us is not None), default=None)

    def _taken_in(self, flow: _Flow, now_us: int) -> bytes:
        return flow.take_in(now_us, self.tap.delay_us + self.tap.drawn_us(flow.way))

    @property
    def _may_break(self) -> bool:
        """A message may come that must not pass."""
        return self.tap.drops_something or self._reader.loses_an_answer

    def move(self, readable: socket.socket | None) -> bool:
        """Let bytes flow; False when the connection is over."""
        now_us = self.tap.now_us()
        try:
            for flow in self.flows:
                if flow.way in self.tap.cut_ways:
                    continue
                data = self._taken_in(flow, now_us) if flow.source is readable else b""
                if data and self._may_break:
                    flow.read(data)
                    data = b""
                flow.pass_on(now_us)
                if data:
                    flow.read(data)  # behind it: whoever waits for these bytes has them by now
        except OSError:
            return False
        return not all(flow.finished for flow in self.flows)


class Tap:
    """One client's proxy; made by `Taps.open`. The client connects to `address`."""

    def __init__(
        self,
        taps: Taps,
        client: str,
        server: Address,
        observer: TapObserver,
        now_us: Callable[[], int],
    ) -> None:
        self._taps, self._server = taps, server
        self.client, self.chroot, self.observer, self.now_us = (
            client, server.chroot, observer, now_us,
        )  # fmt: skip
        self.cut_ways: frozenset[Way] = frozenset()
        self.delay_us = 0
        self.drawn_us: Callable[[Way], int] = lambda way: 0
        self._drops: list[tuple[When, str | None]] = []
        self.pings = 0
        self.blind_bytes = 0
        """Bytes that passed without being understood."""
        self.lines: list[_Line] = []
        self._turn = 0
        self.listener = socket.create_server((HOST, 0), backlog=128)
        self.listener.setblocking(False)
        self.address = Address(((HOST, self.listener.getsockname()[1]),), server.chroot)

    def cut(self, *ways: Way) -> None:
        """Bytes stop both ways (or these ways too), those on their way as well; connections stay.
        Exact: when it returns nothing passes any more."""
        self._taps.run(lambda: self._set_cut(self.cut_ways | frozenset(ways or Way)))

    def heal(self) -> None:
        """What was held passes, in order; of several connections the older one's bytes first."""
        self._taps.run(partial(self._set_cut, frozenset()))

    def delay(self, extra_us: int) -> None:
        """What passes from now on takes `extra_us` longer, each way; 0 ends it."""
        self._taps.run(partial(setattr, self, "delay_us", extra_us))

    def disturb(self, drawn_us: Callable[[Way], int]) -> None:
        """What is read from now on takes longer by what is drawn for it; on the taps' thread."""
        self._taps.run(partial(setattr, self, "drawn_us", drawn_us))

    def drop_connection(self, when: When, kind: str | None = None, count: int = 1) -> None:
        """The connection breaks at the next `count` requests of `kind` (`setData`, `multi`; None:
        any): before each is passed on, or after it, in the place of its answer. 0: at no more,
        whatever was ordered (as `Ensemble` does)."""
        self._taps.run(partial(self._order_drops, when, kind, count))

    def _order_drops(self, when: When, kind: str | None, count: int) -> None:
        self._drops = [*self._drops, *[(when, kind)] * count] if count else []

    @property
    def drops_something(self) -> bool:
        return bool(self._drops)

    def take_drop(self, request: Request | str) -> When | None:
        """Whether this request is one to break the connection at."""
        for drop in self._drops:
            if not isinstance(request, str) and drop[1] in (None, name_of(request)):
                self._drops.remove(drop)
                return drop[0]
        return None

    def hang_up(self) -> None:
        """Break the connections there are; new ones are let through (or wait, while it is cut)."""
        self._taps.run(partial(self._taps.hang_up, self))

    def close(self) -> None:
        """Break all its connections and stop listening."""
        self._taps.run(partial(self._taps.drop, self))

    @property
    def lets_in(self) -> bool:
        """A new connection can be made: a handshake needs both ways."""
        return not self.cut_ways

    def _set_cut(self, ways: frozenset[Way]) -> None:
        self.cut_ways = ways
        self._taps.look_after(self)

    def connect(self) -> socket.socket:
        """On its way to the next of the servers."""
        server = self._server.servers[self._turn % len(self._server.servers)]
        self._turn += 1
        outward = socket.socket(socket.AF_INET6 if ":" in server[0] else socket.AF_INET)
        outward.setblocking(False)
        outward.connect_ex(server)
        return outward


class Taps:
    """The thread of all taps. A context manager; `now_us` is the clock of what is told, and of
    delays: it goes `pace` times as fast as the wall clock."""

    def __init__(self, observer: TapObserver, now_us: Callable[[], int], pace: int = 1) -> None:
        self._observer, self._now_us, self._pace = observer, now_us, pace
        self._selector = selectors.DefaultSelector()
        self._taps: list[Tap] = []
        self._lines: dict[socket.socket, _Line] = {}
        self._watched: dict[socket.socket, int] = {}
        self._delayed: dict[_Line, None] = {}
        self._orders: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._waker, self._wake = socket.socketpair()
        self._waker.setblocking(False)
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._open = True
        self._thread = threading.Thread(target=self._loop, name="zk-taps", daemon=True)
        self._thread.start()

    def open(self, client: str, server: Address) -> Tap:
        """A tap for the process named `client`; paths are told inside the address's chroot."""
        assert self._thread.is_alive(), "the taps are closed"
        tap = Tap(self, client, server, self._observer, self._now_us)
        self.run(partial(self._add, tap))
        return tap

    def close(self) -> None:
        """Break all connections, end the thread."""
        if self._thread.is_alive():
            self.run(self._end)
            self._thread.join(_PATIENCE_S)

    def __enter__(self) -> Taps:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, order: Callable[[], None]) -> None:
        """Let the thread do something and wait until it has."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            order()
            return
        done: Future[None] = Future()
        self._orders.append((order, done))
        self._wake.send(b"\0")
        done.result(_PATIENCE_S)

    # ---- on the thread ----

    def look_after(self, tap: Tap) -> None:
        """The tap was cut or healed: what it held goes first, oldest connection first."""
        for line in list(tap.lines):
            self._move(line, *line.sockets)
        self._watch(tap.listener, selectors.EVENT_READ if tap.lets_in else 0)

    def hang_up(self, tap: Tap) -> None:
        for line in list(tap.lines):
            self._hang_up(line)

    def drop(self, tap: Tap) -> None:
        if tap in self._taps:
            self._taps.remove(tap)
            self.hang_up(tap)
            self._watch(tap.listener, 0)
            del self._watched[tap.listener]
            tap.listener.close()

    def _add(self, tap: Tap) -> None:
        self._taps.append(tap)
        self._watch(tap.listener, selectors.EVENT_READ)

    def _end(self) -> None:
        self._open = False
        for tap in list(self._taps):
            self.drop(tap)

    def _loop(self) -> None:
        try:
            while self._open:
                for key, events in self._selector.select(self._patience_s()):
                    self._on_ready(key, events)
                for line in list(self._delayed):
                    self._move(line)
        finally:
            self._end()
            for end in (self._waker, self._wake, self._selector):
                end.close()

    def _on_ready(self, key: selectors.SelectorKey, events: int) -> None:
        end = key.fileobj
        if end is self._waker:
            self._waker.recv(_CHUNK)
            while self._orders:
                _carry_out(*self._orders.popleft())
        elif isinstance(end, socket.socket) and (line := self._lines.get(end)):
            self._move(line, *([end] if events & selectors.EVENT_READ else []))
        else:
            for tap in self._taps:
                if tap.listener is end and tap.lets_in:
                    self._accept(tap)

    def _patience_s(self) -> float | None:
        dues = [due for line in self._delayed if (due := line.next_due_us()) is not None]
        return max(0.0, (min(dues) - self._now_us()) / self._pace / 1e6) if dues else None

    def _accept(self, tap: Tap) -> None:
        try:
            inward, _ = tap.listener.accept()
        except OSError:
            return  # it went away again
        inward.setblocking(False)
        if _given_up(inward):
            inward.close()  # during a cut: a real network would not have let it come this far
            return
        line = _Line(tap, inward, tap.connect())
        tap.lines.append(line)
        for end in line.sockets:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._lines[end] = line
        self._move(line)

    def _move(self, line: _Line, *readable: socket.socket) -> None:
        if not all(line.move(end) for end in readable or (None,)):
            self._hang_up(line)
            return
        for end in line.sockets:
            self._watch(end, line.events_of(end))
        if line.holds_something:
            self._delayed[line] = None
        else:
            self._delayed.pop(line, None)

    def _hang_up(self, line: _Line) -> None:
        if line in line.tap.lines:
            line.tap.lines.remove(line)
            self._delayed.pop(line, None)
            for end in line.sockets:
                self._watch(end, 0)
                del self._lines[end], self._watched[end]
                end.close()

    def _watch(self, end: socket.socket, events: int) -> None:
        watched = self._watched.get(end, 0)
        if watched == events:
            return
        if not watched:
            self._selector.register(end, events)
        elif not events:
            self._selector.unregister(end)
        else:
            self._selector.modify(end, events)
        self._watched[end] = events


def _carry_out(order: Callable[[], None], done: Future[None]) -> None:
    try:
        order()
    except Exception as error:
        done.set_exception(error)
        raise
    done.set_result(None)


def _given_up(connection: socket.socket) -> bool:
    """The other end has closed it already."""
    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state in _CLOSED_BY_THE_OTHER


def _inside(request: Request | str, chroot: str) -> Request | str:
    """The request with its paths as the client gave them."""
    if isinstance(request, str) or not chroot:
        return request
    if isinstance(request, Multi):
        ops = tuple(
            msgspec.structs.replace(op, path=jute.inside(chroot, op.path)) for op in request.ops
        )
        return Multi(ops)
    return msgspec.structs.replace(request, path=jute.inside(chroot, request.path))
