"""Links between brokers, distinguished by the first bytes of a connection."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.kernel.rng import Chance
from emulator.worlds.links import ProxiedLinks
from emulator.worlds.real_kafka.inter_broker_proxies import NOBODY, InterBrokerProxies, sender_of
from emulator.worlds.zookeeper import TappedZooKeeper
from zk.real.proxy import Proxies
from zk.real.server import HOST, Address
from zk.real.tap import Tap

CLIENTS = {
    "1": 1,
    "broker-2-fetcher-0": 2,
    "broker-12-fetcher-3": 12,
    "rdkafka": NOBODY,
    "": NOBODY,
}


def first_request(client: str | None, body: bytes = b"body") -> bytes:
    """The header of a Fetch, and something behind it."""
    name = b"" if client is None else client.encode()
    length = -1 if client is None else len(name)
    message = struct.pack("!hhih", 1, 11, 7, length) + name + body
    return struct.pack("!i", len(message)) + message


@pytest.mark.parametrize(("client", "broker"), CLIENTS.items())
def test_a_broker_is_known_by_its_client_id(client: str, broker: int) -> None:
    assert sender_of(first_request(client)) == broker


def test_who_has_no_client_id_is_no_broker() -> None:
    assert sender_of(first_request(None)) == NOBODY


@given(st.sampled_from(list(CLIENTS)), st.integers(0, 40))
def test_nothing_is_concluded_from_half_a_header(client: str, cut: int) -> None:
    whole = first_request(client, b"")
    assert sender_of(whole[:cut]) == (CLIENTS[client] if cut >= len(whole) else None)


class Cluster:
    """Two listeners that stand for brokers, each behind its door."""

    def __init__(self, proxies: Proxies) -> None:
        chance = Chance(7)
        self.between = InterBrokerProxies(proxies)
        no_taps: dict[int, Tap] = {}
        zookeeper = TappedZooKeeper(
            no_taps.__getitem__, lambda _server, _what: None, lambda _broker: None
        )
        self.links = ProxiedLinks(
            (1, 2, 3),
            zookeeper,
            lambda purpose, actor: partial(chance.stream, purpose, actor),
            self.between.links,
        )
        self.servers: dict[int, socket.socket] = {}
        self.doors: dict[int, Address] = {}
        self._open: list[socket.socket] = []
        for broker in (1, 2, 3):
            self.servers[broker] = server = socket.create_server((HOST, 0))
            server.settimeout(5.0)
            where = Address(((HOST, server.getsockname()[1]),))
            self.doors[broker] = self.between.open(broker, where)

    def connect(self, client: str, to: int) -> tuple[socket.socket, socket.socket]:
        """Both ends of a connection whose first request is on its way."""
        mine = socket.create_connection(self.doors[to].servers[0])
        mine.sendall(first_request(client))
        theirs, _ = self.servers[to].accept()
        self._open += [mine, theirs]
        for end in (mine, theirs):
            end.settimeout(5.0)
        return mine, theirs

    def close(self) -> None:
        for end in (*self._open, *self.servers.values()):
            end.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Proxies(lambda: time.monotonic_ns() // 1000) as proxies:
        made = Cluster(proxies)
        yield made
        made.close()


def passes(source: socket.socket, sink: socket.socket, number: int) -> bool:
    """Something gets through; what is cut is looked at for a tenth of a second."""
    source.sendall(b"%d;" % number)
    sink.settimeout(0.1)
    read = b""
    try:
        while not read.endswith(b"%d;" % number):
            read += sink.recv(4096)
    except TimeoutError:
        return False
    return True


def test_a_link_is_cut_for_the_two_brokers_that_it_joins_and_for_nobody_else(
    cluster: Cluster,
) -> None:
    numbers = itertools.count()
    fetcher = cluster.connect("broker-2-fetcher-0", 1)
    controller = cluster.connect("1", 2)
    others = [cluster.connect("3", 1), cluster.connect("rdkafka", 1), cluster.connect("3", 2)]
    cluster.links.cut(2, 1, "both")
    assert not any(passes(a, b, next(numbers)) for a, b in (fetcher, controller))
    assert not any(passes(b, a, next(numbers)) for a, b in (fetcher, controller))
    assert all(passes(a, b, next(numbers)) for a, b in others)
    cluster.links.heal(1, 2)
    assert all(passes(a, b, next(numbers)) for a, b in (fetcher, controller))


def test_a_link_that_is_cut_one_way_carries_the_other_on_everybodys_connections(
    cluster: Cluster,
) -> None:
    """To broker 1: what 2 asks on its connection, and what it answers on 1's."""
    fetcher, leader = cluster.connect("broker-2-fetcher-0", 1)
    requester, answerer = cluster.connect("1", 2)
    for _ in range(2):
        assert passes(fetcher, leader, 0)
        assert passes(requester, answerer, 0)
    cluster.links.cut(2, 1, "to_peer")
    assert not passes(fetcher, leader, 1)
    assert not passes(answerer, requester, 1)
    assert passes(leader, fetcher, 2)
    assert passes(requester, answerer, 2)


def test_who_connects_to_a_link_that_is_cut_waits_until_it_is_healed(cluster: Cluster) -> None:
    cluster.links.cut(2, 1, "both")
    _, leader = cluster.connect("broker-2-fetcher-0", 1)
    leader.settimeout(0.1)
    with pytest.raises(TimeoutError):
        leader.recv(1)
    cluster.links.heal(2, 1)
    leader.settimeout(5.0)
    assert leader.recv(4096) == first_request("broker-2-fetcher-0")


def test_a_delayed_link_takes_its_time_each_way(cluster: Cluster) -> None:
    fetcher, leader = cluster.connect("broker-2-fetcher-0", 1)
    assert passes(fetcher, leader, 0)
    cluster.links.delay(1, 2, 150)
    began = time.monotonic()
    assert not passes(leader, fetcher, 1)
    fetcher.settimeout(5.0)
    fetcher.recv(1)
    assert time.monotonic() - began >= 0.15


def test_latencies_are_drawn_as_in_the_worlds_of_the_emulator(cluster: Cluster) -> None:
    fetcher, leader = cluster.connect("broker-2-fetcher-0", 1)
    assert passes(fetcher, leader, 0)
    cluster.links.link_latency(1, 2, "to_peer", (150, 150, 160))
    assert not passes(leader, fetcher, 1)
    assert passes(fetcher, leader, 1)
