"""The tap reports what passes, and holds it when it is cut or delayed."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from tests.live.zk.owner import PATIENCE_S, Owner, connect
from zk.errors import Code
from zk.ops import (
    Check,
    Create,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Request,
    SessionState,
    SetData,
)
from zk.real.kazoo_service import KazooService
from zk.real.server import Address, EmbeddedServer, four_letter_word
from zk.real.tap import Taps
from zk.wire import Direction

pytestmark = pytest.mark.live

Told = tuple[str, Request | str]


class Notes:
    """What an observer received: requests, and requests with their code and time."""

    def __init__(self) -> None:
        self.requests: list[Told] = []
        self.replies: list[tuple[Request | str, Code, int]] = []
        self._changed = threading.Condition()

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        assert abs(now_us() - at_us) < 1_000_000
        with self._changed:
            self.requests.append((client, request))
            self._changed.notify_all()

    def on_reply(self, client: str, request: Request | str, code: Code, elapsed_us: int) -> None:
        with self._changed:
            self.replies.append((request, code, elapsed_us))
            self._changed.notify_all()

    def until(self, done: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(done, PATIENCE_S), (self.requests, self.replies)


def now_us() -> int:
    return time.monotonic_ns() // 1000


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def taps(notes: Notes) -> Iterator[Taps]:
    with Taps(notes, now_us) as running:
        yield running


def tapped(taps: Taps, service: KazooService, address: Address, client: str = "broker-1") -> None:
    service.route(client, taps.open(client, address).address)


def test_requests_and_their_results_are_told_in_order(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    tapped(taps, service, address)
    owner = Owner()
    session = connect(service, owner)
    asked: list[Request] = [
        Create("/a", b"x"),
        GetData("/a", watch=True),
        SetData("/a", b"y", 7),
        Multi((Check("/a", 0), SetData("/a", None, 0))),
        Multi((Check("/a", 0), SetData("/b", None, 0))),
        Exists("/b", watch=True),
        GetChildren("/"),
    ]
    owner.ask(session, *asked)
    session.close()
    owner.until_state(SessionState.CLOSED)
    told: list[Request | str] = ["connect", *asked, "closeSession"]
    notes.until(lambda: len(notes.replies) == len(told))
    assert notes.requests == [("broker-1", request) for request in told]
    ok, bad = Code.OK, Code.BAD_VERSION
    codes = [ok, ok, ok, bad, ok, bad, Code.NO_NODE, ok, ok]
    assert [(request, code) for request, code, _ in notes.replies] == list(
        zip(told, codes, strict=True)
    )
    assert all(0 < elapsed_us < 5_000_000 for _, _, elapsed_us in notes.replies)


def test_set_watches_and_a_reconnect_are_told_and_pings_are_counted(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    tap = taps.open("broker-1", address)
    service.route("broker-1", tap.address)
    owner = Owner()
    session = connect(service, owner, timeout_ms=900)
    owner.ask(session, Exists("/a", watch=True))
    tap.hang_up()
    owner.until_state(SessionState.DISCONNECTED)
    owner.until_state(SessionState.CONNECTED)
    owner.idle_for(1.2)
    told = [request for _, request in notes.requests]
    assert told == ["connect", Exists("/a", watch=True), "connect", "setWatches"]
    assert tap.pings >= 3


def test_a_cut_holds_bytes_and_a_heal_lets_them_pass(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    tap = taps.open("broker-1", address)
    service.route("broker-1", tap.address)
    owner = Owner()
    session = connect(service, owner)
    tap.cut()
    for n in range(3):
        session.submit(Create(f"/{n}", b""), owner.seen.append)
    owner.idle_for(0.3)
    assert [request for _, request in notes.requests] == ["connect"]
    assert owner.seen == [SessionState.CONNECTED]
    tap.heal()
    owner.until(lambda: len(owner.seen) == 4)
    paths = [request.path for _, request in notes.requests if isinstance(request, Create)]
    assert paths == ["/0", "/1", "/2"]
    assert owner.states == [SessionState.CONNECTED]


def test_a_delay_holds_each_way(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    tap = taps.open("broker-1", address)
    service.route("broker-1", tap.address)
    owner = Owner()
    session = connect(service, owner)
    tap.delay(100_000)
    began = now_us()
    owner.ask(session, *[Exists("/")] * 5)
    assert 200_000 <= now_us() - began < 1_000_000
    tap.delay(0)
    began = now_us()
    owner.ask_one(session, Exists("/"))
    assert now_us() - began < 100_000


def test_a_cut_of_one_way_loses_the_answers_only(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    tap = taps.open("broker-1", address)
    service.route("broker-1", tap.address)
    owner, other = Owner(), Owner()
    session, control = connect(service, owner), connect(service, other, "broker-2")
    other.ask_one(control, Exists("/a", watch=True))
    tap.cut(Direction.TO_CLIENT)
    session.submit(Create("/a", b""), owner.seen.append)
    other.until(lambda: bool(other.events))
    assert owner.seen == [SessionState.CONNECTED]
    tap.heal()
    owner.until(lambda: len(owner.seen) == 2)


@pytest.mark.parametrize(("when", "applied"), [("before", False), ("after", True)])
def test_a_connection_breaks_at_a_request_of_a_kind(
    taps: Taps,
    notes: Notes,
    service: KazooService,
    address: Address,
    when: Literal["before", "after"],
    applied: bool,
) -> None:
    """Pipelined: what was answered before it is not lost, what comes behind it is."""
    tap = taps.open("broker-1", address)
    service.route("broker-1", tap.address)
    owner = Owner()
    session = connect(service, owner)
    owner.ask_one(session, Create("/a", b""))
    tap.drop_connection(when, "setData")
    codes = [
        reply.code
        for reply in owner.ask(session, Exists("/a"), SetData("/a", b"1"), Create("/b", None))
    ]
    assert codes[1:] == [Code.CONNECTION_LOSS] * 2
    owner.until(lambda: owner.states.count(SessionState.CONNECTED) == 2)
    read = owner.ask_one(session, Exists("/a"))
    assert read.stat is not None
    assert read.stat.version == int(applied)
    assert owner.ask_one(session, SetData("/a", b"2")).code is Code.OK
    assert tap.blind_bytes == 0


def test_what_is_not_zookeepers_passes_untouched_and_is_counted(
    taps: Taps, notes: Notes, server: EmbeddedServer
) -> None:
    tap = taps.open("broker-1", server.address)
    assert four_letter_word(tap.address.servers[0], "ruok") == "imok"
    assert tap.blind_bytes == len("ruok") + len("imok")
    assert notes.requests == []


def test_bytes_are_the_same_on_both_sides(taps: Taps, notes: Notes) -> None:
    """Whatever they are, in whatever pieces, more than any buffer holds."""
    rubbish = bytes(255 - n * 7 % 251 for n in range(3_000_000))
    received: queue.Queue[bytes] = queue.Queue()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tap = taps.open("broker-1", Address((listener.getsockname()[:2],)))
        reader = threading.Thread(target=_read_all, args=(listener, received))
        reader.start()
        with socket.create_connection(tap.address.servers[0]) as client:
            client.sendall(rubbish)
            client.shutdown(socket.SHUT_WR)
            assert received.get(timeout=PATIENCE_S) == rubbish
            assert client.recv(10) == b""
        reader.join()
    assert tap.blind_bytes == len(rubbish)


def _read_all(listener: socket.socket, received: queue.Queue[bytes]) -> None:
    connection, _ = listener.accept()
    with connection:
        received.put(b"".join(iter(lambda: connection.recv(65536), b"")))


def test_who_gave_up_during_a_cut_is_not_let_through(
    taps: Taps, notes: Notes, server: EmbeddedServer
) -> None:
    """Otherwise its handshake would open an unused session."""
    tap = taps.open("broker-1", server.address)
    tap.cut()
    with socket.create_connection(tap.address.servers[0]) as impatient:
        impatient.sendall(b"ruok")
    tap.heal()
    assert four_letter_word(tap.address.servers[0], "ruok") == "imok"
    assert tap.blind_bytes == 8


def test_a_server_that_is_not_there(taps: Taps) -> None:
    tap = taps.open("broker-1", Address((("127.0.0.1", 1),)))
    with socket.create_connection(tap.address.servers[0]) as client:
        client.settimeout(PATIENCE_S)
        assert client.recv(10) == b""


def test_many_taps_have_one_thread(
    taps: Taps, notes: Notes, service: KazooService, address: Address
) -> None:
    before = threading.active_count()
    owner = Owner()
    names = [f"broker-{n}" for n in range(20)]
    for name in names:
        tapped(taps, service, address, name)
    sessions = [connect(service, owner, name) for name in names]
    assert threading.active_count() - before == len(names)
    for name, session in zip(names, sessions, strict=True):
        assert owner.ask_one(session, Create(f"/{name}", b"")).code is Code.OK
    told = [(name, Create(f"/{name}", b"")) for name in names]
    assert [one for one in notes.requests if one[1] != "connect"] == told


def test_a_tap_that_is_closed_refuses_and_the_others_go_on(
    taps: Taps, notes: Notes, server: EmbeddedServer
) -> None:
    one, other = (taps.open(f"broker-{n}", server.address) for n in (1, 2))
    one.close()
    one.close()
    with pytest.raises(ConnectionRefusedError):
        four_letter_word(one.address.servers[0], "ruok")
    assert four_letter_word(other.address.servers[0], "ruok") == "imok"
