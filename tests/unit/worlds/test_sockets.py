"""Lines of the broker's end: one request at a time, and none before its answer has left; and what
all of them together may take."""

import os
import queue
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from emulator.worlds.network import delayed_closes
from emulator.worlds.network.delayed_closes import DelayedCloses
from emulator.worlds.network.sockets import (
    RESERVED_DESCRIPTORS,
    ConnectionLimits,
    FramedSocket,
    Sockets,
)

INVALID = b"\xff\xff\xff\xff"
"""A frame of -1 bytes."""

ANSWER = bytes(1 << 20)
FRAMES = 40
"""Their answers are more than the operating system takes for a client that does not read."""


class Server:
    """Sockets of a broker that answers every frame with itself, when it may."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.log: queue.Queue[str] = queue.Queue()
        self.frames: queue.Queue[tuple[FramedSocket, bytes]] = queue.Queue()
        self.ends: queue.Queue[str] = queue.Queue()
        self.sockets = Sockets(limits, self.log.put)
        self.address = self.sockets.listen("127.0.0.1", 0, self._accepted).getsockname()

    def _accepted(self, line: FramedSocket) -> None:
        line.on_frame = lambda payload: self.frames.put((line, payload))
        line.on_end = self.ends.put
        line.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, 10)

    def answer(self) -> bytes:
        """The next request of any connection, now answered."""
        line, payload = self.frames.get(timeout=10)
        line.respond(struct.pack(">i", len(payload)) + payload)
        return payload


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@contextmanager
def serving(**limits: int) -> Iterator[Server]:
    server = Server(ConnectionLimits(**limits))
    try:
        yield server
    finally:
        server.sockets.close()


def ended(client: socket.socket) -> bool:
    """The other end closes, or has closed."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_who_does_not_read_is_not_served_on() -> None:
    """All its requests are answered as it reads; nothing accumulates for it."""
    waiting_here: list[int] = []
    sockets = Sockets()

    def accepted(line: FramedSocket) -> None:
        def answer(_: bytes) -> None:
            waiting_here.append(line.unsent)
            line.respond(ANSWER)

        line.on_frame = answer
        line.start()

    server = sockets.listen("127.0.0.1", 0, accepted)
    with socket.create_connection(server.getsockname(), 10) as client:
        client.sendall(struct.pack(">iB", 1, 0) * FRAMES)
        left = FRAMES * len(ANSWER)
        while left:
            left -= len(client.recv(min(left, 1 << 16)))
    assert waiting_here == [0] * FRAMES
    sockets.close()


def test_a_request_above_socket_request_max_bytes_closes_its_connection() -> None:
    with serving(socket_request_max_bytes=1000) as server, server.connect() as client:
        client.sendall(framed(bytes(1000)))
        assert server.answer() == bytes(1000)
        assert client.recv(2000)
        client.sendall(framed(bytes(1001))[:10])
        assert server.ends.get(timeout=10) == "a frame of 1001 bytes; 1000 at most"
        assert ended(client)


def test_requests_wait_while_queued_max_request_bytes_are_taken() -> None:
    """While any space is left a request is read, however long it is; then the next ones wait, in
    order, until one is answered."""
    with (
        serving(queued_max_request_bytes=100) as server,
        server.connect() as first,
        server.connect() as second,
        server.connect() as third,
    ):
        first.sendall(framed(b"1" * 150))
        line, payload = server.frames.get(timeout=10)
        second.sendall(framed(b"2" * 50))
        third.sendall(framed(b"3" * 50))
        with pytest.raises(queue.Empty):
            server.frames.get(timeout=0.2)
        line.respond(framed(payload))
        assert {server.answer()[:1], server.answer()[:1]} == {b"2", b"3"}


def test_the_memory_of_a_request_that_was_begun_is_free_when_its_sender_goes() -> None:
    with serving(queued_max_request_bytes=100) as server, server.connect() as first:
        first.sendall(framed(bytes(150))[:60])
        with server.connect() as second:
            second.sendall(framed(b"2"))
            with pytest.raises(queue.Empty):
                server.frames.get(timeout=0.2)
            first.close()
            assert server.answer() == b"2"


def test_a_connection_above_max_connections_waits_until_another_ends() -> None:
    with serving(max_connections=2) as server, ExitStack() as clients:
        first, _, third = (clients.enter_context(server.connect()) for _ in range(3))
        assert server.log.get(timeout=10) == (
            "no new connections are accepted for now: there are 2 connections (max.connections)"
        )
        third.sendall(framed(b"3"))
        with pytest.raises(queue.Empty):
            server.frames.get(timeout=0.2)
        first.close()
        assert server.answer() == b"3"


def test_a_connection_above_max_connections_per_ip_is_closed() -> None:
    with serving(max_connections_per_ip=1) as server, server.connect() as first:
        first.sendall(framed(b"1"))
        assert server.answer() == b"1"
        with server.connect() as second:
            assert ended(second)
        assert "there are 1 from this address (max.connections.per.ip)" in server.log.get(
            timeout=10
        )


def test_who_reads_nothing_of_an_answer_is_closed_in_the_end() -> None:
    with serving(connections_max_idle_ms=300) as server, server.connect() as client:
        client.sendall(framed(b"1"))
        line, _ = server.frames.get(timeout=10)
        line.respond(bytes(64 << 20))
        assert server.ends.get(timeout=10) == "its answer was not read"
        assert "it read nothing for 300 ms" in server.log.get(timeout=10)


@contextmanager
def descriptors(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_without_descriptors_nobody_is_accepted_until_there_are_some_again() -> None:
    """It says once what is missing, does not spin, and leaves some for files."""
    with serving() as server, ExitStack() as clients:
        lowest = os.dup(0)
        os.close(lowest)
        limit = lowest + 80
        with descriptors(limit):
            while server.log.empty():
                clients.enter_context(server.connect()).sendall(framed(b"1"))
                while server.log.empty():
                    with suppress(queue.Empty):
                        line, payload = server.frames.get(timeout=0.05)
                        line.respond(framed(payload))
                        break
            assert server.log.get() == (
                "no new connections are accepted for now: Too many open files, the process may"
                f" have {limit} descriptors (ulimit -n)"
            )
            os.close(os.open(os.devnull, os.O_RDONLY))
            before = time.process_time()
            with pytest.raises(queue.Empty):
                server.frames.get(timeout=1.5)
            assert time.process_time() - before < 0.5
            assert server.log.empty()
        assert server.answer() == b"1"


@pytest.fixture
def only_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first invalid connection is; no other is because of the time."""
    monkeypatch.setattr(delayed_closes, "INTERVAL_S", 1e6)


def ends_of_invalid(server: Server, clients: ExitStack, count: int) -> list[socket.socket]:
    """Connections that sent what is no frame; the server has done with them."""
    made = [clients.enter_context(server.connect()) for _ in range(count)]
    for client in made:
        client.sendall(INVALID)
        assert server.ends.get(timeout=10) == "a frame of -1 bytes"
    return made


def first_beyond_all(taken: ExitStack) -> int:
    """The first descriptor after all that are in use; the free ones before it are taken, because a
    limit counts numbers, and one of them would do for a client."""
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    while (lowest := os.dup(0)) <= highest:
        taken.callback(os.close, lowest)
    os.close(lowest)
    return lowest


def open_ones(clients: list[socket.socket]) -> list[socket.socket]:
    """Those that the other end has not closed."""
    for client in clients:
        client.settimeout(0)

    def is_open(client: socket.socket) -> bool:
        try:
            return not ended(client)
        except BlockingIOError:
            return True

    return [client for client in clients if is_open(client)]


def test_invalid_connections_are_closed_in_turn_and_one_alone_at_once() -> None:
    closes, interval_s = DelayedCloses(), delayed_closes.INTERVAL_S
    with ExitStack() as clients:
        pairs = [socket.socketpair() for _ in range(4)]
        here = [clients.enter_context(pair[0]) for pair in pairs]
        assert closes.wait_s(50.0) is None
        for number, pair in enumerate(pairs[:3]):
            closes.add(pair[1], 50.0 + number * interval_s / 10)
        assert open_ones(here[:3]) == here[1:3]
        assert closes.wait_s(50.0 + interval_s / 4) == pytest.approx(interval_s * 3 / 4)
        closes.close_due(50.0 + interval_s / 2)
        assert open_ones(here[1:3]) == here[1:3]
        closes.close_due(51.0)
        closes.close_due(51.0)
        assert open_ones(here[1:3]) == here[2:3]
        closes.close_due(51.0 + interval_s * 1.5)
        assert open_ones(here[2:3]) == []
        assert closes.wait_s(51.0 + interval_s * 1.5) is None
        closes.add(pairs[3][1], 52.0)
        assert open_ones(here[3:]) == []


@pytest.mark.usefixtures("only_one_is_closed")
def test_no_more_invalid_connections_are_kept_than_a_few() -> None:
    with serving() as server, ExitStack() as clients:
        most = delayed_closes.MAX_PENDING
        made = ends_of_invalid(server, clients, 1 + most)
        assert open_ones(made) == made[1:]
        more = ends_of_invalid(server, clients, 5)
        for client in made[:6]:
            client.settimeout(10)
        assert all(ended(client) for client in made[1:6])
        assert open_ones(made[6:] + more) == made[6:] + more


@pytest.mark.usefixtures("only_one_is_closed")
def test_of_an_invalid_connection_nothing_more_is_read() -> None:
    with serving() as server, ExitStack() as clients:
        for client in ends_of_invalid(server, clients, 3)[1:]:
            client.sendall(framed(b"1"))
        with server.connect() as other:
            other.sendall(framed(b"2"))
            assert server.answer() == b"2"
            assert other.recv(5) == framed(b"2")
        assert server.frames.empty()


@pytest.mark.usefixtures("only_one_is_closed")
def test_invalid_connections_take_no_room_from_others() -> None:
    """Not of max.connections, nor of the memory for requests."""
    with (
        serving(max_connections=1, queued_max_request_bytes=10) as server,
        ExitStack() as clients,
    ):
        for client in (clients.enter_context(server.connect()) for _ in range(3)):
            client.sendall(framed(bytes(20)))
            line, _ = server.frames.get(timeout=10)
            line.close(delayed=True)
        last = clients.enter_context(server.connect())
        last.sendall(framed(b"1"))
        assert server.ends.get(timeout=10) == "closed here"
        assert server.answer() == b"1"


@pytest.mark.usefixtures("only_one_is_closed")
def test_invalid_connections_are_closed_when_descriptors_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None is closed while the limit is computed: the limit counts those in use.
    monkeypatch.setattr(delayed_closes, "INTERVAL_S", 1e6)
    with serving() as server, ExitStack() as clients, socket.socket() as client:
        made = ends_of_invalid(server, clients, 6)
        lowest = first_beyond_all(clients)
        # The most that clients may have is what is in use.
        limit = next(
            n for n in range(lowest, 4096) if n - min(RESERVED_DESCRIPTORS, n // 4) == lowest
        )
        client.settimeout(10)
        with descriptors(limit):
            client.connect(server.address)
            client.sendall(framed(b"1"))
            assert server.answer() == b"1"
        assert open_ones(made) == []
        assert server.log.empty()


def test_who_sends_invalid_frames_one_after_the_other_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delayed_closes, "INTERVAL_S", 0.05)
    with serving() as server:
        began_s = time.monotonic()
        for _ in range(5):
            with server.connect() as client:
                client.sendall(INVALID)
                assert ended(client)
        assert time.monotonic() - began_s >= 4 * 0.05
