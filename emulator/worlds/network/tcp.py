"""The network between brokers as processes: Kafka's protocol over TCP, on the kernel.

Implements `kafka.protocol.transport.Network` like the network in memory. Owns connections at both
ends, and the choice of request versions; `worlds.wire` has the bytes, `sockets` the sockets'
thread. A message that is not Kafka's closes its connection, with a reason, and has no other effect.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from emulator.kafka.profiles.base import Profile
from emulator.kafka.protocol.messages import ControlRequest, ProduceRequest, Request
from emulator.kafka.protocol.transport import Connection, Disconnected
from emulator.kernel.scheduler import Process
from emulator.kernel.sync import Promise
from emulator.worlds.live_clock import LiveClock, LiveKernel
from emulator.worlds.network.cause_links import CausalityLog, cause_of
from emulator.worlds.network.memory import Listener
from emulator.worlds.network.sending import BROKEN, send
from emulator.worlds.network.sockets import FramedSocket, Sockets
from emulator.worlds.wire.api import SENT_BY_BROKERS, apis, supported_versions, version_sent
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import (
    ReceivedRequest,
    UnknownApiVersionsVersion,
    api_of,
    arrived,
    has_schema,
    load_schema,
    load_schema_of,
    request_frame,
    response_from,
)

Log = Callable[[str], None]
SHORT = 4096
"""Bytes of a request that is read in a moment; one with 10,000 entries takes 20 ms."""


class TcpNetwork:
    """All connections of one broker, or of the clients of one process."""

    def __init__(
        self,
        kernel: LiveKernel,
        clock: LiveClock,
        profile: Profile,
        links: CausalityLog,
        log: Log,
        routes: Mapping[tuple[str, int], tuple[str, int]] | None = None,
        sockets: Sockets | None = None,
    ) -> None:
        """`log` receives the reasons why connections were closed, on any thread. `routes` are
        proxies, by the advertised address that they represent. `sockets`: shared with others, who
        close them; None: its own."""
        self.kernel, self.clock, self.profile = kernel, clock, profile
        self.links, self.log = links, log
        self.knows = supported_versions(profile)
        self._routes = dict(routes or {})
        self.before_sending: Callable[[], None] = lambda: None
        self.on_invalid_request: Callable[[], None] = lambda: None
        """Called when a connection was closed because of what came in, some time later."""
        self.on_request: Callable[[str], None] = lambda _: None
        """Called with the API of each request."""
        self.check_control_request: Callable[[ControlRequest, Callable[[str], None]], None] = (
            lambda _, decide: decide("")
        )
        """Called with a control request; says why it is refused, or that it is not ("")."""
        self._has_own_sockets = sockets is None
        self._sockets = sockets or Sockets()
        self._reader = ThreadPoolExecutor(1, "reader")
        self._loader = ThreadPoolExecutor(1, "loader")
        self._servers: dict[int, Any] = {}
        self._accepted: dict[Accepted, None] = {}
        self._opened: dict[TcpConnection, None] = {}

    def load_schemas(self) -> None:
        """Create the schemas of what a broker sends, before it runs: that opens files, which in the
        kernel's thread would end a broker that has no descriptors left. Raises OSError."""
        keys = {api.name: key for key, api in apis().items()}
        for name in SENT_BY_BROKERS:
            if name in self.knows:
                load_schema_of(keys[name], version_sent(self.profile, name, self.knows[name][1]))

    # -- the broker's end --------------------------------------------------------------------------

    def listen(self, host: str, port: int, name: int, listener: Listener) -> None:
        """Accept at `host:port`, which brokers know as port `name`. Raises OSError."""

        self._servers[name] = self._sockets.listen(
            host, port, lambda line: self._take(line, listener)
        )

    def _take(self, line: FramedSocket, listener: Listener) -> None:
        """The sockets' thread: the kernel's thread learns of a connection by its first request."""
        connection = Accepted(self, line, listener)
        self._accepted[connection] = None
        line.on_frame = lambda payload: self._take_frame(connection, payload)
        line.on_end = connection.ended
        line.start()

    def _take_frame(self, connection: Accepted, payload: bytes) -> None:
        """The sockets' thread, where Kafka parses too (SocketServer.scala@2.6.3
        processCompletedReceives): the kernel's thread has no work with what is no request. Who
        sends much, or asks for something new, waits for another thread, and others do not wait for
        him: a stranger could ask for each version of each API, one after the other."""
        if not has_schema(payload, self.knows):
            self._loader.submit(partial(self._load_schema, connection, payload))
        elif len(payload) <= SHORT:
            connection.read(payload)
        else:
            self._reader.submit(connection.read, payload)

    def _load_schema(self, connection: Accepted, payload: bytes) -> None:
        """The loader's thread: it rests three times as long as it works, because others want the
        interpreter meanwhile."""
        began_s = time.monotonic()
        try:
            load_schema(payload)
        except OSError as error:
            # The client tries again on another connection.
            self.log(f"connection from {connection.client} closed: {error.strerror}")
            connection.close()
            return
        self._take_frame(connection, payload)
        time.sleep(3 * (time.monotonic() - began_s))

    def stop_listening(self, port: int) -> None:
        """See emulator.kafka.protocol.transport.Network."""
        self._sockets.stop_listening(self._servers.pop(port))
        self._close_accepted()

    def _close_accepted(self) -> None:
        def close() -> None:
            # At once: an order of its own would come after the one that ends the thread.
            for connection in list(self._accepted):
                connection.end()

        self._sockets.do(close)

    def refused(self, peer: str, why: str) -> None:
        """Any thread: the input is not a Kafka request, and its connection is closed. The kernel's
        thread counts it when it is awake: a stranger's frames do not wake it."""
        self.log(f"connection from {peer} closed: {why}")
        self.clock.put_without_waking(self.on_invalid_request)

    def accepted_ended(self, connection: Accepted) -> None:
        """The sockets' thread."""
        self._accepted.pop(connection, None)

    def opened_ended(self, connection: TcpConnection) -> None:
        self._opened.pop(connection, None)

    # -- the client's end --------------------------------------------------------------------------

    async def connect(self, client: str, host: str, port: int, timeout_ms: int) -> Connection:
        """See emulator.kafka.protocol.transport.Network."""
        process = self.kernel.this_task().process
        return await self.connect_from(process, client, host, port, timeout_ms)

    async def connect_from(
        self, process: Process, client: str, host: str, port: int, timeout_ms: int
    ) -> TcpConnection:
        """Open a connection in the name of one of this process's clients."""
        connected: Promise[FramedSocket | OSError] = Promise(self.kernel)

        def done(line: FramedSocket | OSError) -> None:
            self.clock.put(lambda: connected.resolve(line))

        where = self._routes.get((host, port), (host, port))
        self._sockets.connect(*where, timeout_ms / 1000, done)
        line = await connected.wait()
        if isinstance(line, OSError):
            raise Disconnected(f"{host}:{port}: {line.strerror or line}")
        connection = TcpConnection(self, process, client, line)
        self._opened[connection] = None
        return connection

    def process_died(self, _: Process) -> None:
        """Close everything that the process has open."""
        self._close_accepted()
        for opened in list(self._opened):
            opened.close()

    def close(self) -> None:
        """Close everything, and end the sockets' thread if it is our own."""
        for port in list(self._servers):
            self.stop_listening(port)
        if self._has_own_sockets:
            self._sockets.close()
        else:
            for opened in list(self._opened):
                opened.close()
        self._loader.shutdown(cancel_futures=True)
        self._reader.shutdown()


class Accepted:
    """The broker's end of one connection: one request after the other."""

    def __init__(self, network: TcpNetwork, line: FramedSocket, listener: Listener) -> None:
        self._network, self._line, self._listener = network, line, listener
        self._lane = listener.next_lane()
        self._answers: list[Any] = []
        self._missing = 0
        self._read: ReceivedRequest | None = None
        self.client = line.peer
        self.host = f"/{line.peer.rpartition(':')[0]}"

    def read(self, payload: bytes) -> None:
        """Any thread: a frame is there."""
        try:
            request = arrived(payload, self._network.knows)
        # The client tries once more, on this connection, with a version that we have (KIP-511).
        except UnknownApiVersionsVersion as too_new:
            self._line.respond(too_new.answer)
        except Malformed as error:
            self._line.refuse(error)
        except Exception as error:  # noqa: BLE001
            # A mistake of ours ends the broker, and not this thread, which would leave it deaf.
            self._network.clock.put(partial(_raise, error))
        else:
            self._network.clock.put(lambda: self._arrived(request))

    def _arrived(self, read: ReceivedRequest) -> None:
        """What a request leads to has its sender's cause."""
        network = self._network
        self._read = read
        self.client = read.client_id or self._line.peer
        network.on_request(read.api.name)
        note = network.links.note("received", read.client_id, read.correlation_id)

        def decide(refusal: str) -> None:
            if refusal:
                self._refuse(refusal)
                return
            # The decision may come later, after a look-up in ZooKeeper: the cause is still the
            # request.
            cause, network.kernel.cause = network.kernel.cause, cause_of(note)
            self._lane.post(self._serve)
            network.kernel.cause = cause

        network.kernel.cause = cause_of(note)
        requests = read.sent.requests
        if requests and isinstance(requests[0], ControlRequest):
            network.check_control_request(requests[0], decide)
        else:
            decide("")
        network.kernel.cause = -1

    def _refuse(self, why: str) -> None:
        self._network.refused(self._line.peer, why)
        self._line.close(delayed=True)

    def _serve(self) -> None:
        """Pass it to the broker, in as many parts as our requests need."""
        assert self._read is not None
        requests = self._read.sent.requests
        self._answers = [None] * len(requests)
        self._missing = len(requests)
        if not requests:
            self._write()
        for number, request in enumerate(requests):
            self._listener.receive(request, Part(self, number))

    def answered(self, part: int, response: Any) -> None:
        self._answers[part] = response
        self._missing -= 1
        if not self._missing:
            self._write()

    def _write(self) -> None:
        """Write the complete response, then read the next request."""
        read, network = self._read, self._network
        assert read is not None
        try:
            frame = read.answer(self._answers)
        except (AttributeError, TypeError) as error:
            network.log(
                f"connection from {self._line.peer} closed: {read.api.name} could not be answered:"
                f" {error}"
            )
            self.close()
            return
        if frame is not None:
            kernel = network.kernel
            network.links.note("answered", read.client_id, read.correlation_id, kernel.cause)
            network.before_sending()
        self._line.respond(frame or b"")

    def hang_up(self) -> None:
        """KafkaApis.scala@2.6.3 closeConnection."""
        assert self._read is not None
        api, client = self._read.api.name, self.client
        self._network.log(f"connection of {client} closed: a {api} with acks 0 failed")
        self.close()

    def close(self) -> None:
        self._line.close()

    def end(self) -> None:
        """The sockets' thread: close now."""
        self._line.end("closed here")

    def ended(self, why: str) -> None:
        """The sockets' thread: the connection has ended."""
        if self._line.malformed:
            self._network.refused(self._line.peer, why)
        self._network.accepted_ended(self)


def _raise(error: Exception) -> None:
    raise error


class Part:
    """One of our requests for a Kafka request (kafka.protocol.transport.ServerConnection)."""

    def __init__(self, whole: Accepted, number: int) -> None:
        self._whole, self._number = whole, number
        self.client, self.host = whole.client, whole.host

    def respond(self, response: Any) -> None:
        self._whole.answered(self._number, response)

    def hang_up(self) -> None:
        self._whole.hang_up()


class TcpConnection:
    """The client's end of one connection."""

    def __init__(
        self, network: TcpNetwork, process: Process, client: str, line: FramedSocket
    ) -> None:
        self._network, self.client, self._line = network, client, line
        self._lane = process.lane(client)
        self._waiting: deque[tuple[int, int, Request, Callable[[Any], None]]] = deque()
        self.open = True
        line.on_frame = lambda payload: network.clock.put(lambda: self._arrived(payload))
        line.on_end = lambda _: network.clock.put(self._ended)
        line.start()

    def send(self, request: Request, timeout_ms: int) -> Coroutine[Any, Any, Any]:
        """See emulator.kafka.protocol.transport.Connection."""
        return send(self, self._network.kernel, self._lane, request, timeout_ms)

    def submit(self, request: Request, on_answer: Callable[[Any], None]) -> None:
        """Write a request without waiting; `on_answer` gets the response, or `broken`."""
        if not self.open:
            on_answer(BROKEN)
            return
        network = self._network
        name = api_of(request).name
        version = version_sent(network.profile, name, network.knows[name][1])
        number = network.links.note("sent", self.client, cause=network.kernel.cause)
        frame = request_frame(request, version, number, self.client)
        network.before_sending()
        self._line.write(frame)
        # There is no response to it: responses are matched by order, and this request would take
        # the next one.
        if isinstance(request, ProduceRequest) and request.acks == 0:
            self._lane.post(lambda: on_answer(None))
        else:
            self._waiting.append((number, version, request, on_answer))

    def _arrived(self, payload: bytes) -> None:
        if not self._waiting:
            return
        number, version, request, on_answer = self._waiting.popleft()
        network = self._network
        try:
            correlation_id, response = response_from(payload, request, version)
            if correlation_id != number:
                raise Malformed(f"the answer to {correlation_id}, not to {number}")
        except Malformed as error:
            network.log(f"connection to {self._line.peer} closed: {error}")
            # Put back in its place: closing completes it, and all behind it, as broken.
            self._waiting.appendleft((number, version, request, on_answer))
            self.close()
            return
        note = network.links.note("got", self.client, number)
        network.kernel.cause = cause_of(note)
        self._lane.post(lambda: on_answer(response))
        network.kernel.cause = -1

    def close(self) -> None:
        """The client closes: requests in flight get no response; the broker may still serve
        them."""
        if self.open:
            self._line.close()
            self._over()

    def _ended(self) -> None:
        if self.open:
            self._lane.post(self._over)

    def _over(self) -> None:
        if self.open:
            self.open = False
            self._network.opened_ended(self)
            waiting, self._waiting = self._waiting, deque()
            for _, _, _, on_answer in waiting:
                on_answer(BROKEN)
