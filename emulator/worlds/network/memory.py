"""The network between brokers and clients in memory: connections on the kernel, in both worlds.

Bytes of one connection never overtake each other; those of several connections may. A request stays
in the socket while its broker is paused, and while the request before it has no response. `links`
has the effects of faults on bytes between processes; here connections break at requests. Latencies
are drawn in virtual time and zero in live time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, get_args

import msgspec

from emulator.kafka.protocol.messages import (
    ControlRequest,
    FetchResponse,
    ProduceRequest,
    Request,
)
from emulator.kafka.protocol.transport import Connection, Disconnected, ServerConnection
from emulator.kernel.holds import HoldPoint
from emulator.kernel.scheduler import Kernel, Lane, Process
from emulator.kernel.sync import Promise
from emulator.worlds.network.links import LinkDirection
from emulator.worlds.network.sending import BROKEN, send
from zk.wire import When, labelled

_timeout = labelled("timeout")


class Break(msgspec.Struct, frozen=True):
    """A connection that breaks at a request: `before` it arrives, or `after` it was served, instead
    of its response. With `late_us` it breaks at once, and the request arrives that much later than
    it would have: a retry may arrive first.
    """

    when: When
    request: str | None = None
    late_us: int = 0

    def matches(self, request: Request) -> bool:
        return self.request in (None, kind_of(request))


def kind_of(request: Request) -> str:
    """Kafka's name of the API: `LeaderAndIsr`."""
    return type(request).__name__.removesuffix("Request")


Latency = Callable[[str, str], int]
Receive = Callable[[Request, ServerConnection], None]


_CONTROL = frozenset(get_args(ControlRequest))

_PURPOSES = dict.fromkeys(_CONTROL, "net_control_request")
"""What the latency of a request is called; of others `net_request`."""

_HUNG_UP = object()
"""In the place of an answer that nobody waits for: the end of the connection."""


class Listener:
    """A broker's sockets: one lane per network thread, assigned to connections in turn.
    `drops_at_end`: see `Broker.drops_requests_at_end`."""

    def __init__(
        self,
        process: Process,
        network_threads: int,
        receive: Receive,
        *,
        drops_at_end: bool = False,
    ) -> None:
        self.process, self.receive, self.drops_at_end = process, receive, drops_at_end
        name = "data-plane-kafka-network-thread"
        self._lanes = [process.lane(f"{name}-{n}") for n in range(network_threads)]
        self._accepted = 0

    def next_lane(self) -> Lane:
        self._accepted += 1
        return self._lanes[self._accepted % len(self._lanes)]


class MemoryNetwork:
    """All links and listeners of one world (emulator.kafka.protocol.transport.Network)."""

    def __init__(self, kernel: Kernel, latency: Latency) -> None:
        self.kernel, self.latency = kernel, latency
        self._listeners: dict[int, Listener] = {}
        self._directions: dict[tuple[str, str], LinkDirection] = {}
        self.breaks: dict[tuple[str, str], list[Break]] = {}
        self._bytes_per_s: dict[str, int] = {}
        self.is_narrow = False
        """Whether any process has limited bandwidth."""
        self._free_at_us: dict[str, int] = {}
        self._open: dict[MemoryConnection, None] = {}

    def listen(self, port: int, listener: Listener) -> None:
        self._listeners[port] = listener

    def stop_listening(self, port: int) -> None:
        """See emulator.kafka.protocol.transport.Network."""
        listener = self._listeners.pop(port)
        for connection in [c for c in self._open if c.listener is listener]:
            connection.reset()

    async def connect(self, client: str, host: str, port: int, timeout_ms: int) -> Connection:
        """See kafka.protocol.transport.Network; the calling thread's process is the client."""
        process = self.kernel.this_task().process
        return await self.connect_from(process, client, host, port, timeout_ms)

    async def connect_from(
        self, process: Process, client: str, host: str, port: int, timeout_ms: int
    ) -> MemoryConnection:
        """Open a connection; refused if there is no listener, timed out while the link is cut. In
        memory all hosts are one."""
        # Looked up when the packets leave: a broker that starts to listen while they are in flight
        # still refuses this attempt.
        listener = self._listeners.get(port)
        await self.kernel.sleep(self.latency("net_connect", process.name))
        # A paused process accepts connections: the operating system completes the handshake.
        if listener is None or listener.process.state == "dead":
            raise Disconnected(f"connection to port {port} refused")
        host_process = listener.process.name
        forth, back = (
            self.direction(process.name, host_process),
            self.direction(host_process, process.name),
        )
        if forth.cut or back.cut or forth.disturbed or back.disturbed:
            await self._shake_hands(process, forth, back, timeout_ms)
            # The broker may have died, or started again, during the handshake.
            if listener.process.state == "dead" or self._listeners.get(port) is not listener:
                raise Disconnected(f"connection to port {port} refused")
        return MemoryConnection(self, process, client, listener, forth, back)

    async def _shake_hands(
        self, process: Process, forth: LinkDirection, back: LinkDirection, timeout_ms: int
    ) -> None:
        """A connection is open when its first packets have passed in both directions."""
        kernel = self.kernel
        until_us = kernel.now + timeout_ms * 1000
        while forth.cut or back.cut:
            await self._wait_for_heal(process, forth if forth.cut else back, until_us)
        passed_us = kernel.now + forth.handshake_us() + back.handshake_us()
        await kernel.sleep_until(min(passed_us, until_us))
        if passed_us > until_us:
            raise Disconnected("the connection was not answered in time")

    async def _wait_for_heal(
        self, process: Process, direction: LinkDirection, until_us: int
    ) -> None:
        healed: Promise[bool] = Promise(self.kernel)
        direction.held.append(lambda: healed.resolve(True))
        thread = self.kernel.this_task().thread
        # The heal and the timeout race for the promise: the first value counts.
        timer = process.lane(thread).call_at(until_us, _timeout(lambda: healed.resolve(False)))
        passed = await healed.wait()
        timer.cancel()
        if not passed:
            raise Disconnected("the connection was not answered in time")

    # -- faults -----------------------------------------------------------------------------------

    def direction(self, a: str, b: str) -> LinkDirection:
        """The direction from one process to another, by name."""
        direction = self._directions.get((a, b))
        if direction is None:
            direction = self._directions[a, b] = LinkDirection()
        return direction

    def cut(self, a: str, b: str) -> None:
        """Stop bytes from `a` to `b`; connections stay open, and no new one can be opened."""
        self.direction(a, b).cut = True

    def heal(self, a: str, b: str) -> None:
        """Release the held bytes in order."""
        # Both directions: a heal undoes the cut of one direction or of both.
        self.direction(a, b).heal()
        self.direction(b, a).heal()

    def delay(self, a: str, b: str, extra_us: int) -> None:
        """Delay every message by this time, in each direction."""
        self.direction(a, b).delay_us = self.direction(b, a).delay_us = extra_us

    def break_connections(self, client: str, server: str, how: Break, count: int) -> None:
        """Break a connection of `client` to `server` at each of the next `count` matching requests;
        0 cancels earlier orders."""
        ordered = self.breaks.pop((client, server), [])
        if count:
            self.breaks[client, server] = [*ordered, *[how] * count]

    def take_break(self, client: str, server: str, request: Request) -> Break | None:
        """The break ordered for this request, if there is one."""
        ordered = self.breaks.get((client, server), [])
        for how in ordered:
            if how.matches(request):
                ordered.remove(how)
                return how
        return None

    def limit_bandwidth(self, to: str, bytes_per_s: int) -> None:
        """Limit the rate at which records reach process `to`; 0: no limit."""
        self._bytes_per_s[to] = bytes_per_s
        self.is_narrow = any(self._bytes_per_s.values())

    def transfer_us(self, to: str, size: int) -> int:
        """How long `size` bytes occupy the limited bandwidth of `to`, including the wait for their
        turn."""
        bytes_per_s = self._bytes_per_s.get(to, 0)
        if not bytes_per_s or not size:
            return 0
        now = self.kernel.now
        # All senders share the bandwidth: concurrent responses wait for each other.
        done = max(now, self._free_at_us.get(to, 0)) + size * 1_000_000 // bytes_per_s
        self._free_at_us[to] = done
        return done - now

    # -- ends -------------------------------------------------------------------------------------

    def opened(self, connection: MemoryConnection) -> None:
        self._open[connection] = None

    def closed(self, connection: MemoryConnection) -> None:
        self._open.pop(connection, None)

    def process_died(self, process: Process) -> None:
        """Its sockets close, and the other ends learn of it."""
        # A copy, because each reset removes its connection from the table.
        for connection in list(self._open):
            if process in (connection.client_process, connection.listener.process):
                connection.reset()

    def connections_of(self, process: Process) -> int:
        """Open connections that `process` accepted."""
        return sum(c.listener.process is process for c in self._open)


class MemoryConnection:
    """One connection, both ends. Requests are in order, and one is served at a time."""

    __slots__ = (
        "_answer_to",
        "_arrives_us",
        "_back",
        "_backlog",
        "_client_lane",
        "_forth",
        "_is_muted",
        "_lane",
        "_network",
        "_request_hold",
        "_response_hold",
        "_returns_us",
        "_served",
        "_served_at_us",
        "_unanswered",
        "client",
        "client_process",
        "listener",
        "open",
    )

    def __init__(
        self,
        network: MemoryNetwork,
        client_process: Process,
        client: str,
        listener: Listener,
        forth: LinkDirection,
        back: LinkDirection,
    ) -> None:
        self._network, self.client_process, self.client = network, client_process, client
        self.listener, self._forth, self._back = listener, forth, back
        self.open = True
        self._lane = listener.next_lane()
        self._client_lane = client_process.lane(client)
        self._answer_to: deque[Callable[[object], None]] = deque()
        self._backlog: deque[tuple[int, Request]] = deque()
        self._is_muted = False
        """The next request is not read before the response to the last one is written."""
        self._served: Request | None = None
        self._served_at_us = 0
        self._unanswered: Request | None = None
        ends = client_process.name, listener.process.name
        self._request_hold = HoldPoint(network.kernel, "request", *ends)
        self._response_hold = HoldPoint(network.kernel, "answer", *reversed(ends))
        self._arrives_us = self._returns_us = 0
        network.opened(self)

    # -- the client's end -------------------------------------------------------------------------

    def send(self, request: Request, timeout_ms: int) -> Coroutine[Any, Any, Any]:
        """See emulator.kafka.protocol.transport.Connection."""
        return send(self, self._network.kernel, self._client_lane, request, timeout_ms)

    def submit(self, request: Request, on_answer: Callable[[object], None]) -> None:
        """Write a request without waiting; `on_answer` gets the response, or `broken`."""
        if not self.open:
            on_answer(BROKEN)
            return
        self._answer_to.append(on_answer)
        network = self._network
        if network.breaks:
            ends = self.client_process.name, self.listener.process.name
            how = network.take_break(*ends, request)
            if how is not None:
                self._break(how, request)
                return
        if network.kernel.holds is None or not self._request_hold.stops(
            kind_of(request), partial(self._pass_on, request)
        ):
            self._pass_on(request)

    @property
    def host(self) -> str:
        """In memory all hosts are one."""
        return "/127.0.0.1"

    @property
    def on_behalf_of(self) -> str:
        """The client that opened the connection."""
        return self.client

    @labelled("pass_on")
    def _pass_on(self, request: Request) -> None:
        if self._forth.cut:
            self._forth.held.append(partial(self._to_server, request))
        else:
            self._to_server(request)

    def _break(self, how: Break, request: Request) -> None:
        """See `Break`."""
        if how.when == "after":
            pass_on = partial(self._to_server, request, how.late_us)
            if self._forth.cut:
                self._forth.held.append(pass_on)
            else:
                pass_on()
        # The request is served and its response lost: the connection breaks when the broker
        # responds (`_write`). With `late_us` it breaks now, and the request arrives on a closed
        # connection.
        if how.when == "after" and not how.late_us:
            self._unanswered = request
        else:
            self.reset()

    @staticmethod
    def broken(answer: object) -> bool:
        """Whether the result means that the connection broke."""
        return answer is BROKEN

    def close(self) -> None:
        """The client closes: requests in flight get no response; the broker may still serve
        them."""
        if self.open:
            self.open = False
            self._network.closed(self)
            self._fail_all()

    def reset(self) -> None:
        """An end died."""
        if self.open:
            self.open = False
            self._network.closed(self)
            # On the client's lane: a paused client learns of the reset when it resumes.
            self._client_lane.post(self._fail_all)

    @labelled("fail_all")
    def _fail_all(self) -> None:
        waiting, self._answer_to = self._answer_to, deque()
        for on_answer in waiting:
            on_answer(BROKEN)

    # -- bytes in flight --------------------------------------------------------------------------

    def _to_server(self, request: Request, late_us: int = 0) -> None:
        network, direction = self._network, self._forth
        us = direction.delay_us + late_us
        if type(request) is not ProduceRequest:  # see `_read`
            us += network.latency(_PURPOSES.get(type(request), "net_request"), self.client)
        passing_us = 0
        if direction.disturbed:
            us += direction.drawn_us()
            passing_us = direction.passing_us(request)
        # TCP: never before earlier bytes of this connection, whatever latency was drawn.
        at = network.kernel.now + us
        if at < self._arrives_us:
            at = self._arrives_us
        self._arrives_us = at + passing_us
        self._lane.call_at(self._arrives_us, partial(self._arrived, self._arrives_us, request))

    @labelled("arrived")
    def _arrived(self, at_us: int, request: Request) -> None:
        """The broker's network thread has read it; the next request is read after this one's
        response."""
        # It was read late, by a paused broker, and the end of the connection with it.
        if self.listener.drops_at_end and not self.open and at_us < self._network.kernel.now:
            return
        if self._is_muted:
            # A request that was sent is served even if its connection has been closed meanwhile.
            # With its own cause: another request's response lets it be served.
            self._backlog.append((self._network.kernel.cause, request))
        else:
            self._read(request)

    def _read(self, request: Request) -> None:
        """A producer has several requests in flight, and each waits for the one before it: so the
        work on a Produce request takes its time from now on, not on its way here."""
        self._is_muted = True
        if type(request) is ProduceRequest:
            us = self._network.latency("net_produce", self.listener.process.name)
            self._lane.call_later(us, partial(self._receive, request))
        else:
            self._receive(request)

    @labelled("receive")
    def _receive(self, request: Request) -> None:
        self._served, self._served_at_us = request, self._network.kernel.now
        self.listener.receive(request, self)

    @labelled("next_request")
    def _read_next(self) -> None:
        if not self._backlog:  # `hang_up` has dropped it
            self._is_muted = False
            return
        self._network.kernel.cause, request = self._backlog.popleft()
        self._read(request)

    # -- the broker's end -------------------------------------------------------------------------

    def respond(self, response: object) -> None:
        """See kafka.protocol.transport.ServerConnection. Shortly after a resume a network thread
        first reads its sockets, then writes."""
        if not self.open:
            return
        process = self.listener.process
        if process.sluggish_until > self._network.kernel.now:
            self._lane.post(labelled("write")(lambda: self._write(response)))
        else:
            self._write(response)

    def hang_up(self) -> None:
        """See kafka.protocol.transport.ServerConnection; unread requests are dropped."""
        self._backlog.clear()
        self.respond(_HUNG_UP)

    def _write(self, response: object) -> None:
        if self._unanswered is not None and self._served is self._unanswered:
            self.reset()
            return
        if self._network.kernel.holds is None or not self._stops(response):
            self._pass_back(response)
        self._served = None
        if self._backlog:
            # `net_produce` contains the time to read a Produce request.
            is_produce = type(self._backlog[0][1]) is ProduceRequest
            self._lane.call_later(0 if is_produce else self._reading_us(), self._read_next)
        else:
            self._is_muted = False

    def _reading_us(self) -> int:
        """From a response until the request behind it is served."""
        return self._network.latency("next_request", self.listener.process.name)

    def _stops(self, response: object) -> bool:
        """A response has no name of its own."""
        assert self._served is not None
        return self._response_hold.stops(kind_of(self._served), partial(self._pass_back, response))

    def _pass_back(self, response: object) -> None:
        if self._back.cut:
            self._back.held.append(partial(self._to_client, response))
        else:
            self._to_client(response)

    def _to_client(self, response: object) -> None:
        network, direction = self._network, self._back
        purpose = "net_response"
        if type(self._served) in _CONTROL:
            purpose = "net_control_response"
        elif network.kernel.now > self._served_at_us:
            purpose = "net_delayed_response"
        us = network.latency(purpose, self.client) + direction.delay_us
        passing_us = 0
        if direction.disturbed:
            us += direction.drawn_us()
            passing_us = direction.passing_us(response)
        # Only records have a size: a follower on a slow link still gets control requests at once.
        if network.is_narrow and isinstance(response, FetchResponse):
            size = sum(p.size for p in response.partitions)
            us += network.transfer_us(self.client_process.name, size)
        at = network.kernel.now + us
        # The same in the other direction. Besides, most of a response's latency passes before it is
        # written, and only then the broker reads the next request; if the link is not narrow.
        if at <= self._returns_us:
            at = self._returns_us + (0 if passing_us else self._reading_us())
        self._returns_us = at + passing_us
        self._client_lane.call_at(self._returns_us, partial(self._answered, response))

    @labelled("answered")
    def _answered(self, response: object) -> None:
        if self._answer_to:
            self._answer_to.popleft()(None if response is _HUNG_UP else response)
        if response is _HUNG_UP:
            self.reset()
