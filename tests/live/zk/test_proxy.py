"""A proxy between any two processes: cut one way or both, healed, delayed, throttled."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.zk.owner import PATIENCE_S
from zk.real.proxy import Proxies, Proxy
from zk.real.server import Address, AddressInUse
from zk.wire import Direction

pytestmark = pytest.mark.live

SOON_S = 0.15


class Peers:
    """A client and a server with a proxy in between, and what each received."""

    def __init__(self, proxies: Proxies) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.proxy: Proxy = proxies.open_proxy(Address((self._listener.getsockname()[:2],)))
        self.client = socket.create_connection(self.proxy.address.servers[0])
        self.server, _ = self._listener.accept()
        for end in (self.client, self.server):
            end.settimeout(PATIENCE_S)

    def close(self) -> None:
        for end in (self.client, self.server, self._listener):
            end.close()


@pytest.fixture
def proxies() -> Iterator[Proxies]:
    with Proxies(lambda: time.monotonic_ns() // 1000) as running:
        yield running


@pytest.fixture
def peers(proxies: Proxies) -> Iterator[Peers]:
    made = Peers(proxies)
    yield made
    made.close()


def heard(end: socket.socket, within_s: float = SOON_S) -> bytes:
    """The bytes received within the time; may be empty."""
    end.settimeout(within_s)
    try:
        return end.recv(1000)
    except TimeoutError:
        return b""
    finally:
        end.settimeout(PATIENCE_S)


def test_what_is_said_during_a_cut_arrives_when_it_is_healed(peers: Peers) -> None:
    peers.proxy.cut()
    peers.client.sendall(b"one")
    peers.server.sendall(b"two")
    assert (heard(peers.server), heard(peers.client)) == (b"", b"")
    peers.proxy.heal()
    assert (peers.server.recv(10), peers.client.recv(10)) == (b"one", b"two")


@pytest.mark.parametrize("way", list(Direction))
def test_a_cut_of_one_way_lets_the_other_through(peers: Peers, way: Direction) -> None:
    ends = {
        Direction.TO_SERVER: (peers.client, peers.server),
        Direction.TO_CLIENT: (peers.server, peers.client),
    }
    (dumb, deaf), (heard_one, listener) = (
        ends[way],
        ends[next(w for w in Direction if w is not way)],
    )
    peers.proxy.cut(way)
    dumb.sendall(b"lost for now")
    heard_one.sendall(b"heard")
    assert listener.recv(10) == b"heard"
    assert heard(deaf) == b""
    peers.proxy.heal()
    assert deaf.recv(20) == b"lost for now"


def test_no_connection_is_made_during_a_cut(peers: Peers) -> None:
    peers.proxy.cut(Direction.TO_CLIENT)
    with socket.create_connection(peers.proxy.address.servers[0]) as late:
        late.sendall(b"hello")
        peers._listener.settimeout(SOON_S)
        with pytest.raises(TimeoutError):
            peers._listener.accept()
        peers.proxy.heal()
        peers._listener.settimeout(PATIENCE_S)
        connection, _ = peers._listener.accept()
        with connection:
            assert connection.recv(10) == b"hello"


def test_a_delay_is_each_ways_and_ends(peers: Peers) -> None:
    peers.proxy.delay(80_000)
    began = time.monotonic()
    peers.client.sendall(b"there")
    peers.server.recv(10)
    peers.server.sendall(b"back")
    peers.client.recv(10)
    assert time.monotonic() - began >= 0.16
    peers.proxy.delay(0)
    peers.client.sendall(b"quick")
    assert peers.server.recv(10) == b"quick"


def test_a_throttled_way_takes_its_time_and_the_other_does_not(peers: Peers) -> None:
    data = bytes(range(256)) * 80
    peers.proxy.throttle(50_000, Direction.TO_SERVER)
    got: queue.Queue[bytes] = queue.Queue()
    reader = threading.Thread(target=lambda: got.put(_exactly(peers.server, len(data))))
    began = time.monotonic()
    reader.start()
    peers.client.sendall(data)
    assert got.get(timeout=PATIENCE_S) == data
    assert time.monotonic() - began >= len(data) / 50_000
    reader.join()
    peers.server.sendall(data)
    assert _exactly(peers.client, len(data)) == data
    peers.proxy.throttle(0)
    peers.client.sendall(data)
    assert _exactly(peers.server, len(data)) == data


def _exactly(end: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        data += end.recv(length - len(data))
    return data


def test_hanging_up_breaks_what_there_is_and_lets_the_next_in(peers: Peers) -> None:
    peers.proxy.hang_up()
    assert (peers.client.recv(10), peers.server.recv(10)) == (b"", b"")
    with socket.create_connection(peers.proxy.address.servers[0]) as again:
        again.sendall(b"again")
        connection, _ = peers._listener.accept()
        with connection:
            assert connection.recv(10) == b"again"


def test_a_server_is_found_by_name_and_one_that_nobody_knows_breaks_the_connection(
    proxies: Proxies,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = proxies.open_proxy(Address((("localhost", listener.getsockname()[1]),)))
        with socket.create_connection(proxy.address.servers[0]):
            listener.accept()[0].close()
    nobody = proxies.open_proxy(Address((("nobody.invalid", 1),)))
    with socket.create_connection(nobody.address.servers[0]) as client:
        client.settimeout(PATIENCE_S)
        assert client.recv(10) == b""


def test_a_port_that_is_taken_is_told(proxies: Proxies) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = taken.getsockname()[:2]
        with pytest.raises(AddressInUse, match=f"{where[1]}"):
            proxies.open_proxy(Address((("127.0.0.1", 1),)), where)


def test_a_name_that_takes_long_to_look_up_holds_up_nobody_else(
    proxies: Proxies, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example that of a stopped container."""
    found, look_up = threading.Event(), socket.getaddrinfo

    def slow(host: str, *arguments: Any, flags: int = 0, **more: Any) -> Any:
        if host == "slow.invalid" and not flags & socket.AI_NUMERICHOST:
            assert found.wait(PATIENCE_S)
            host = "127.0.0.1"
        return look_up(host, *arguments, flags=flags, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = proxies.open_proxy(Address((("slow.invalid", listener.getsockname()[1]),)))
        with socket.create_connection(named.address.servers[0]) as client:
            client.sendall(b"patience")
            peers.client.sendall(b"meanwhile")
            assert peers.server.recv(10) == b"meanwhile"
            found.set()
            server, _ = listener.accept()
            with server:
                assert server.recv(10) == b"patience"


def test_a_name_that_nobody_has_ends_the_connection(
    proxies: Proxies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(host: str, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, host)

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    named = proxies.open_proxy(Address((("nobody.invalid", 1),)))
    with socket.socket() as client:
        client.settimeout(PATIENCE_S)
        client.connect(named.address.servers[0])
        assert client.recv(10) == b""
