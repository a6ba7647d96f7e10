"""A loopback proxy between one client and its ZooKeeper server that reads the requests.

Reports requests as `zk.ops` structs when they pass, and responses with their code and duration.
After unreadable bytes the tap only passes on and counts bytes. It can also break the connection at
a request, before or after it was applied. `zk.real.proxy` implements what any proxy can do (cut,
heal, delay, throttle). Knows no kazoo.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import structs

from zk.errors import Code
from zk.ops import Multi, Request, name_of
from zk.real import jute
from zk.real.proxy import Break, Conversation, Proxies, Proxy
from zk.real.server import HOST, Address
from zk.wire import When

__all__ = ["Exchange", "Tap", "TapObserver", "Taps"]

_FRAME_MAX = 1 << 26


class TapObserver(Protocol):
    """Receives requests and responses on the taps' thread; must not block. A string is a request
    that is not the application's: `connect`, `setWatches`, `closeSession`, `auth`. Pings and watch
    events are not reported."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed; `at_us` is the time on the taps' clock."""
        ...

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        """Its response passed, `elapsed_us` later. A Multi has the code of its failed operation."""
        ...


class Exchange(msgspec.Struct):
    """A request that passed, and its response so far. Session and xid identify it on the wire (and
    in the server's log); the session of a `connect` is known only from its response."""

    at_us: int
    client: str
    request: Request | str
    session: int = 0
    xid: int = 0
    answer_is_lost: bool = False


class _Reader:
    """Reads both directions of one connection, in pieces as they arrive."""

    def __init__(self, tap: Tap, client: str) -> None:
        self._tap, self._client = tap, client
        self._from_client, self._from_server = bytearray(), bytearray()
        self._connected = self._answered = self._blind = False
        self._session = 0
        self._pending: deque[Exchange] = deque()

    @property
    def may_break(self) -> bool:
        """Whether a message may arrive that must not pass."""
        loses_an_answer = any(exchange.answer_is_lost for exchange in self._pending)
        return self._tap.has_drops or loses_an_answer

    def ended(self) -> None:
        """Pending requests will never be answered on this connection."""
        self._pending.clear()

    def sent(self, data: bytes) -> None:
        self._read(self._from_client, data, self._request)

    def answered(self, data: bytes) -> None:
        self._read(self._from_server, data, self._reply)

    def _read(self, stream: bytearray, data: bytes, take: Callable[[bytes], None]) -> None:
        """Raises Break if the tap must break the connection here."""
        if self._blind:
            self._tap.blind_bytes += len(data)
            return
        passed = -len(stream)  # of these bytes, those before the current message
        stream += data
        try:
            for message in jute.take_frames(stream, _FRAME_MAX):
                take(message)
                passed += 4 + len(message)
        except jute.Malformed:
            # The message is not valid, or not known to us: the client must not suffer from that.
            self._blind = True
            self._tap.blind_bytes += len(stream)
        except Break:
            raise Break(max(0, passed)) from None

    def _request(self, message: bytes) -> None:
        request: Request | str
        if not self._connected:
            jute.decode_connect(message)
            self._connected = True
            xid, request = 0, "connect"
        else:
            xid, request = jute.decode_request(message)
        if request == "ping":
            self._tap.pings += 1
            return
        at_us, chroot = self._tap.now_us(), self._tap.chroot
        # The client's paths.
        if not chroot or isinstance(request, str):
            pass
        elif isinstance(request, Multi):
            inside = (structs.replace(o, path=jute.inside(chroot, o.path)) for o in request.ops)
            request = Multi(tuple(inside))
        else:
            request = structs.replace(request, path=jute.inside(chroot, request.path))
        self._tap.observer.on_request(at_us, self._client, request)
        exchange = Exchange(at_us, self._client, request, self._session, xid)
        self._tap.keep(exchange)
        drop = self._tap.take_drop(request)
        if drop == "before":
            raise Break
        exchange.answer_is_lost = drop == "after"
        self._pending.append(exchange)

    def _reply(self, message: bytes) -> None:
        if not self._answered:
            self._answered = True
            connected = jute.decode_connected(message)
            alive = connected.timeout_ms > 0
            if alive:
                self._session = connected.session_id
                for exchange in self._pending:
                    exchange.session = connected.session_id
                self._tap.sessions[connected.session_id] = connected
            self._report_reply(0, Code.OK if alive else Code.SESSION_EXPIRED)
            return
        header = jute.decode_reply_header(message)
        if header.xid not in (jute.XID_NOTIFICATION, jute.XID_PING):
            self._report_reply(header.xid, jute.code_of(header.error), message)

    def _report_reply(self, xid: int, code: Code, message: bytes = b"") -> None:
        if not self._pending or self._pending[0].xid != xid:
            raise jute.Malformed(f"a response to {xid}, a request that was not sent")
        exchange, tap = self._pending.popleft(), self._tap
        if exchange.answer_is_lost:
            raise Break
        if isinstance(exchange.request, Multi) and code is Code.OK:
            # The header of a failed multi has OK too; the code is in its results.
            code = jute.decode_reply(exchange.request, message).code
        tap.observer.on_reply(self._client, exchange.request, code, tap.now_us() - exchange.at_us)


class Tap(Proxy):
    """One client's proxy; made by `Taps.open`. The client connects to `address`. If `client` is
    empty, any client may connect, and is named by its address."""

    def __init__(
        self, taps: Taps, client: str, server: Address, listen: tuple[str, int] = (HOST, 0)
    ) -> None:
        super().__init__(taps, server, listen)
        self.client, self.chroot, self.observer = client, server.chroot, taps.observer
        self._drops: list[tuple[When, str | None]] = []
        self.keep: Callable[[Exchange], object] = lambda _: None
        """Called with each exchange when its request passes; the response is filled in later. By
        default exchanges are dropped: a tap may run for weeks."""
        self.pings = 0
        self.blind_bytes = 0
        """Bytes that passed without being understood."""
        self.sessions: dict[int, jute.ConnectResponse] = {}
        """The client's sessions as the server granted them, in order."""

    def listen_to(self, client: socket.socket) -> Conversation:
        name = self.client
        if not name:
            try:
                host, port = client.getpeername()[:2]
                name = f"{host}:{port}"
            except OSError:
                name = "somebody"  # already disconnected
        return _Reader(self, name)

    def drop_connection(self, when: When, kind: str | None = None, count: int = 1) -> None:
        """Break the connection at the next `count` requests of `kind` (`setData`, `multi`; None:
        any): before each is passed on, or after it, instead of its response. 0 cancels earlier
        calls (as in the modelled `Ensemble`)."""

        def order() -> None:
            self._drops = [*self._drops, *[(when, kind)] * count] if count else []

        self._proxies.run(order)

    @property
    def has_drops(self) -> bool:
        return bool(self._drops)

    def take_drop(self, request: Request | str) -> When | None:
        """Whether, and when, to break the connection at this request."""
        for drop in self._drops:
            if not isinstance(request, str) and drop[1] in (None, name_of(request)):
                self._drops.remove(drop)
                return drop[0]
        return None


class Taps(Proxies):
    """The thread of all taps, which calls the observer."""

    def __init__(self, observer: TapObserver, now_us: Callable[[], int], pace: int = 1) -> None:
        self.observer = observer
        super().__init__(now_us, pace)

    def open(self, client: str, server: Address, listen: tuple[str, int] = (HOST, 0)) -> Tap:
        """Make a tap for the process named `client`; reported paths are relative to the address's
        chroot. Raises AddressInUse."""
        return self.add(Tap(self, client, server, listen))

    def __enter__(self) -> Taps:
        return self
