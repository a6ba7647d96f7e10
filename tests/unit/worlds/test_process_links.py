"""Proxies between processes: each link by itself, each way by itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from emulator.worlds.links import ProxiedLinks
from emulator.worlds.network.links import Stream
from emulator.worlds.processes.proxies import ProcessProxies
from emulator.worlds.zookeeper import TappedZooKeeper
from zk.real.server import Address

PATIENCE_S = 30.0
QUIET_S = 0.05


class Peers:
    """Three who listen, and connections between them through the proxies."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.servers = {n: stack.enter_context(socket.create_server(("127.0.0.1", 0))) for n in IDS}
        where = {n: Address((one.getsockname()[:2],)) for n, one in self.servers.items()}
        nobody = Address((("127.0.0.1", 1),))
        self.proxies = ProcessProxies(lambda: time.monotonic_ns() // 1000, nobody, where)
        stack.callback(self.proxies.close)
        tap_of, expire = self.proxies.tap_of, self.proxies.expire_session
        zookeeper = TappedZooKeeper(tap_of, lambda _server, _what: None, expire)
        self.links = ProxiedLinks(IDS, zookeeper, lambda *_: Always, self.proxies.between)

    def connected(self, a: int, b: int) -> tuple[socket.socket, socket.socket]:
        """The end of `a`, who connects, and that of `b`."""
        host, port = self.proxies.routes_of(a)[b].split(":")
        out = self._stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))
        inward, _ = self.servers[b].accept()
        inward.settimeout(PATIENCE_S)
        return out, self._stack.enter_context(inward)


IDS = (1, 2, 3)


class Always(Stream):
    """The most of what can be drawn."""

    def bits(self) -> int:
        return 1

    def below(self, n: int) -> int:
        return n - 1


@pytest.fixture
def peers() -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(stack)


def passes(source: socket.socket, sink: socket.socket) -> bool:
    """Whether a byte comes through; one that does not now comes later."""
    source.sendall(b"x")
    sink.settimeout(QUIET_S)
    try:
        return sink.recv(1) == b"x"
    except TimeoutError:
        return False
    finally:
        sink.settimeout(PATIENCE_S)


def test_a_cut_stops_both_connections_of_a_link_one_way_and_no_others(peers: Peers) -> None:
    a_to_b, b_from_a = peers.connected(1, 2)
    b_to_a, a_from_b = peers.connected(2, 1)
    a_to_c, c_from_a = peers.connected(1, 3)
    peers.links.cut(1, 2, "to_peer")
    assert not passes(a_to_b, b_from_a)
    assert not passes(a_from_b, b_to_a)
    assert passes(b_from_a, a_to_b)
    assert passes(b_to_a, a_from_b)
    assert passes(a_to_c, c_from_a)
    peers.links.heal(2, 1)
    assert b_from_a.recv(1) == b"x"
    assert b_to_a.recv(1) == b"x"


def test_a_delay_is_added_each_way(peers: Peers) -> None:
    a, b = peers.connected(1, 2)
    peers.links.delay(1, 2, 200)
    for source, sink in ((a, b), (b, a)):
        began = time.monotonic()
        source.sendall(b"x")
        assert sink.recv(1) == b"x"
        assert time.monotonic() - began >= 0.2
    peers.links.delay(2, 1, 0)
    a.sendall(b"y")
    assert b.recv(1) == b"y"


def test_what_is_drawn_for_a_way_is_added_on_that_way(peers: Peers) -> None:
    a, b = peers.connected(1, 2)
    peers.links.link_latency(1, 2, "to_peer", (100, 150, 200))
    began = time.monotonic()
    a.sendall(b"x")
    assert b.recv(1) == b"x"
    assert time.monotonic() - began >= 0.2
    assert passes(b, a)


def test_a_narrow_follower_gets_few_bytes_of_what_it_asks_for(peers: Peers) -> None:
    """Requests to the follower itself are not limited."""
    fetches, serves = peers.connected(2, 1)
    asks, is_asked = peers.connected(1, 2)
    peers.links.limit_bandwidth(2, 10_000)
    began = time.monotonic()
    serves.sendall(bytes(3_000))
    got = 0
    while got < 3_000:
        got += len(fetches.recv(4_096))
    assert time.monotonic() - began >= 0.25
    assert passes(is_asked, asks)
    assert passes(asks, is_asked)


def test_a_session_that_nobody_has_is_not_ended(peers: Peers) -> None:
    peers.proxies.expire_session(1)
