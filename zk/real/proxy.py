"""TCP proxies between a client and its server, which can stop, delay and slow down the traffic.

Owns connections and the bytes in flight. A proxy can be cut (traffic stops, one way or both;
existing connections stay open, new ones are not made), healed, delayed and throttled. One thread
serves all proxies of a process. It does not know what the bytes mean: a `Conversation` may read
along, and decide where the connection breaks. Bytes are never changed.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeVar

from zk.real.server import HOST, Address, AddressInUse
from zk.wire import Direction

_CHUNK = 64 * 1024
_NARROW_CHUNK = 1024
_HELD_MAX = 1 << 20  # bytes in flight in one direction before the source must wait
_CLOSED_BY_THE_OTHER = (7, 8)  # TCP_CLOSE, TCP_CLOSE_WAIT of linux/tcp_states.h
_PATIENCE_S = 10.0


class Break(Exception):
    """The connection breaks here: only the first `passed` of the bytes just read are passed on."""

    def __init__(self, passed: int = 0) -> None:
        super().__init__(passed)
        self.passed = passed


class Conversation(Protocol):
    """Reads along on one connection, on the proxies' thread. Raises Break where the connection must
    break."""

    @property
    def may_break(self) -> bool:
        """Whether a message may arrive that must not pass, so that input is read before it is
        passed on."""
        ...

    def sent(self, data: bytes) -> None: ...

    def answered(self, data: bytes) -> None: ...

    def ended(self) -> None:
        """The connection is over."""
        ...


class Unread:
    """A conversation that reads nothing."""

    may_break = False

    def sent(self, data: bytes) -> None: ...

    def answered(self, data: bytes) -> None: ...

    def ended(self) -> None: ...


class _Flow:
    """One direction of a connection: bytes in flight, oldest first."""

    def __init__(
        self,
        direction: Direction,
        source: socket.socket,
        sink: socket.socket,
        read: Callable[[bytes], None],
    ) -> None:
        self.direction, self.source, self.sink, self._read = direction, source, sink, read
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

    def take_in(self, now_us: int, delay_us: int, bytes_per_s: int) -> bytes:
        """Read available input. Raises OSError if the source was reset."""
        try:
            data = self.source.recv(_NARROW_CHUNK if bytes_per_s else _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self._ended = True
            return b""
        self._held += len(data)
        self._last_due_us = max(self._last_due_us, now_us + delay_us)
        if bytes_per_s:
            self._last_due_us += len(data) * 1_000_000 // bytes_per_s
        self._waiting.append((self._last_due_us, data))
        return data

    def read(self, data: bytes) -> None:
        """Let the conversation read; if the connection must break, drop the last bytes."""
        try:
            self._read(data)
        except Break as here:
            self.breaks = True
            if self._waiting and self._waiting[-1][1] is data:
                self._waiting[-1] = (self._last_due_us, data[: here.passed])
                self._held -= len(data) - here.passed

    def pass_on(self, now_us: int) -> None:
        """Send what is due and, after the last byte, the end of the stream. Raises OSError."""
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
    """The client's connection and its counterpart to the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.sockets = proxy, (client, server)
        self.conversation = proxy.listen_to(client)
        self.flows = (
            _Flow(Direction.TO_SERVER, client, server, self.conversation.sent),
            _Flow(Direction.TO_CLIENT, server, client, self.conversation.answered),
        )

    def events_of(self, end: socket.socket) -> int:
        """The events that the selector waits for at this socket."""
        events = 0
        for flow in self.flows:
            if flow.direction in self.proxy.cut_directions:
                continue
            if flow.source is end and flow.wants_to_read:
                events |= selectors.EVENT_READ
            if flow.sink is end and flow.wants_to_write:
                events |= selectors.EVENT_WRITE
        return events

    @property
    def has_holds(self) -> bool:
        """Whether there are bytes that may pass only later."""
        return any(flow.due_us is not None for flow in self.flows)

    def next_due_us(self) -> int | None:
        """When the oldest delayed byte may pass."""
        flows = [flow for flow in self.flows if flow.direction not in self.proxy.cut_directions]
        return min((flow.due_us for flow in flows if flow.due_us is not None), default=None)

    def move(self, readable: socket.socket | None) -> bool:
        """Transfer bytes; False if the connection has ended."""
        now_us = self.proxy.now_us()
        try:
            for flow in self.flows:
                proxy = self.proxy
                if flow.direction in proxy.cut_directions:
                    continue
                data = b""
                if flow.source is readable:
                    delay_us = proxy.delay_us + proxy.drawn_us(flow.direction)
                    data = flow.take_in(now_us, delay_us, proxy.bytes_per_s.get(flow.direction, 0))
                if data and self.conversation.may_break:
                    flow.read(data)
                    data = b""
                if flow.direction in self.proxy.cut_directions:
                    continue  # it was handed over to a proxy that is cut
                flow.pass_on(now_us)
                if data:
                    flow.read(data)  # after passing them on: a waiting reader already has them
        except OSError:
            return False
        return not all(flow.finished for flow in self.flows)


class Proxy:
    """A proxy between a client and its server; made by `Proxies.open_proxy`. The client connects to
    `address`. With several servers, each new connection goes to the next one."""

    def __init__(
        self, proxies: Proxies, server: Address, listen: tuple[str, int] = (HOST, 0)
    ) -> None:
        """Raises AddressInUse."""
        self._proxies, self.server = proxies, server
        self.now_us = proxies.now_us
        self.cut_directions: frozenset[Direction] = frozenset()
        self.delay_us = 0
        self.bytes_per_s: dict[Direction, int] = {}
        self.drawn_us: Callable[[Direction], int] = lambda direction: 0
        self.lines: list[_Line] = []
        self._turn = 0
        family = socket.AF_INET6 if ":" in listen[0] else socket.AF_INET
        try:
            self.listener = socket.create_server(listen, family=family, backlog=128)
        except OSError as error:
            where = f"{listen[0]}:{listen[1]}"
            raise AddressInUse(f"cannot listen on {where}: {error.strerror}") from None
        self.listener.setblocking(False)
        port: int = self.listener.getsockname()[1]
        self.address = Address(((listen[0], port),), server.chroot)

    def listen_to(self, client: socket.socket) -> Conversation:
        """The conversation that reads along on a new connection."""
        return Unread()

    def cut(self, *directions: Direction) -> None:
        """Stop traffic in both directions (or additionally in these), including bytes in flight;
        connections stay open. Exact: when it returns, no byte passes any more."""
        self._proxies.run(
            lambda: self._set_cut(self.cut_directions | frozenset(directions or Direction))
        )

    def heal(self) -> None:
        """Pass on everything held, in order; of several connections the oldest first."""
        self._proxies.run(partial(self._set_cut, frozenset()))

    def delay(self, extra_us: int) -> None:
        """Delay bytes from now on by `extra_us` in each direction; 0 ends it."""
        self._proxies.run(partial(setattr, self, "delay_us", extra_us))

    def disturb(self, drawn_us: Callable[[Direction], int]) -> None:
        """Delay input from now on by a random time, drawn on the proxies' thread."""
        self._proxies.run(partial(setattr, self, "drawn_us", drawn_us))

    def throttle(self, bytes_per_s: int, *directions: Direction) -> None:
        """Limit the rate of input from now on; 0: no limit."""
        limits = {**self.bytes_per_s, **dict.fromkeys(directions or Direction, bytes_per_s)}
        self._proxies.run(partial(setattr, self, "bytes_per_s", limits))

    def hang_up(self) -> None:
        """Break all connections; new ones are accepted (or wait, while it is cut)."""
        self._proxies.run(partial(self._proxies.hang_up, self))

    def hand_over(self, conversation: Conversation, to: Proxy) -> None:
        """Move a connection to another proxy. On the proxies' thread, while it is read."""
        for line in [one for one in self.lines if one.conversation is conversation]:
            self.lines.remove(line)
            to.lines.append(line)
            line.proxy = to

    def close(self) -> None:
        """Break all its connections and stop listening."""
        self._proxies.run(partial(self._proxies.drop, self))

    @property
    def accepts_connections(self) -> bool:
        """Whether a new connection is possible: a handshake needs both directions."""
        return not self.cut_directions

    def _set_cut(self, directions: frozenset[Direction]) -> None:
        self.cut_directions = directions
        self._proxies.apply_cut(self)

    def next_server(self) -> tuple[str, int]:
        """The server of the next connection."""
        self._turn += 1
        return self.server.servers[(self._turn - 1) % len(self.server.servers)]


AnyProxy = TypeVar("AnyProxy", bound=Proxy)
SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Target = tuple[socket.AddressFamily, socket.SocketKind, int, str, SocketAddress]
"""The result of an address look-up."""


class Proxies:
    """The thread of all proxies. Use as a context manager. `now_us` is the clock of delays and
    reports; it runs `pace` times as fast as the wall clock."""

    def __init__(self, now_us: Callable[[], int], pace: int = 1) -> None:
        self.now_us, self._pace = now_us, pace
        self._selector = selectors.DefaultSelector()
        self._proxies: list[Proxy] = []
        self._lines: dict[socket.socket, _Line] = {}
        self._watched: dict[socket.socket, int] = {}
        self._delayed: dict[_Line, None] = {}
        self._orders: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._waker, self._wake = socket.socketpair()
        self._waker.setblocking(False)
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._open = True
        self._thread = threading.Thread(target=self._loop, name="zk-proxies", daemon=True)
        self._thread.start()

    def open_proxy(self, server: Address, listen: tuple[str, int] = (HOST, 0)) -> Proxy:
        """Make a proxy to this server. Raises AddressInUse."""
        return self.add(Proxy(self, server, listen))

    def add(self, proxy: AnyProxy) -> AnyProxy:
        """Serve this proxy from now on."""
        assert self._thread.is_alive(), "the proxies are closed"

        def serve() -> None:
            self._proxies.append(proxy)
            self._watch(proxy.listener, selectors.EVENT_READ)

        self.run(serve)
        return proxy

    def close(self) -> None:
        """Break all connections and end the thread."""
        if self._thread.is_alive():
            self.run(self._end)
            self._thread.join(_PATIENCE_S)

    def __enter__(self) -> Proxies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, order: Callable[[], None]) -> None:
        """Run `order` on the thread, and wait for it."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            order()
            return
        done: Future[None] = Future()
        self._orders.append((order, done))
        self._wake.send(b"\0")
        done.result(_PATIENCE_S)

    # ---- on the thread ----

    def apply_cut(self, proxy: Proxy) -> None:
        """After a cut or heal: pass on what was held, oldest connection first."""
        for line in list(proxy.lines):
            self._move(line, *line.sockets)
        self._watch(proxy.listener, selectors.EVENT_READ if proxy.accepts_connections else 0)

    def hang_up(self, proxy: Proxy) -> None:
        for line in list(proxy.lines):
            self._hang_up(line)

    def drop(self, proxy: Proxy) -> None:
        if proxy in self._proxies:
            self._proxies.remove(proxy)
            self.hang_up(proxy)
            self._watch(proxy.listener, 0)
            del self._watched[proxy.listener]
            proxy.listener.close()

    def _end(self) -> None:
        self._open = False
        for proxy in list(self._proxies):
            self.drop(proxy)

    def _loop(self) -> None:
        try:
            while self._open:
                dues = [due for line in self._delayed if (due := line.next_due_us()) is not None]
                patience_s = (min(dues) - self.now_us()) / self._pace / 1e6 if dues else None
                ready = self._selector.select(None if patience_s is None else max(0.0, patience_s))
                for key, events in ready:
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
                order, done = self._orders.popleft()
                try:
                    order()
                except Exception as error:
                    done.set_exception(error)
                    raise
                done.set_result(None)
        elif isinstance(end, socket.socket) and (line := self._lines.get(end)):
            self._move(line, *([end] if events & selectors.EVENT_READ else []))
        else:
            for proxy in self._proxies:
                if proxy.listener is end and proxy.accepts_connections:
                    self._accept(proxy)

    def _accept(self, proxy: Proxy) -> None:
        try:
            inward, _ = proxy.listener.accept()
        except OSError:
            return  # the client has already disconnected
        inward.setblocking(False)
        if inward.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _CLOSED_BY_THE_OTHER:
            # The kernel accepted the connection during a cut, and the client has given up since. A
            # real network would not have established it.
            inward.close()
            return
        host, port = proxy.next_server()
        try:
            self._join(proxy, inward, _look_up(host, port, socket.AI_NUMERICHOST))
        except socket.gaierror:  # a name instead of an address
            # Resolved each time, because a restarted server may have another address. The name of a
            # stopped container takes ten seconds, during which other connections must not wait.
            def join_by_name() -> None:
                try:
                    target = _look_up(host, port)
                    self.run(partial(self._join, proxy, inward, target))
                except OSError:
                    inward.close()  # the name is unknown, or the proxies were closed meanwhile

            threading.Thread(target=join_by_name, name="zk-lookup", daemon=True).start()

    def _join(self, proxy: Proxy, inward: socket.socket, target: Target) -> None:
        """Connect the client's connection to the server."""
        if proxy not in self._proxies or inward.fileno() < 0:
            inward.close()
            return
        family, kind, number, _, where = target
        outward = socket.socket(family, kind, number)
        outward.setblocking(False)
        outward.connect_ex(where)
        line = _Line(proxy, inward, outward)
        proxy.lines.append(line)
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
        if line.has_holds:
            self._delayed[line] = None
        else:
            self._delayed.pop(line, None)

    def _hang_up(self, line: _Line) -> None:
        if line in line.proxy.lines:
            line.proxy.lines.remove(line)
            self._delayed.pop(line, None)
            for end in line.sockets:
                self._watch(end, 0)
                del self._lines[end], self._watched[end]
                end.close()
            line.conversation.ended()

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


def _look_up(host: str, port: int, flags: int = 0) -> Target:
    """Raises OSError."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)[0]
