"""The rules that make kazoo behave as Kafka's client, each on a real server (house, section 2)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from tests.live.zk.owner import (
    LATE_MS,
    PATIENCE_S,
    QUICK,
    T_MS,
    TICK_MS,
    Owner,
    another_session,
    connect,
    start_unwatched,
)
from tests.live.zk.unresponsive_server import UnresponsiveServer
from zk.errors import Code
from zk.ops import (
    Create,
    CreateMode,
    Delete,
    EventType,
    Exists,
    GetChildren,
    GetData,
    Reply,
    SessionState,
    SetData,
    Sync,
    WatchedEvent,
)
from zk.real.kazoo_service import KazooService
from zk.real.kazoo_wire import KazooSession, _Entry
from zk.real.server import (
    Address,
    EmbeddedServer,
    SessionTimeoutClamped,
    parse_address,
    reserve,
)
from zk.real.tap import Tap

pytestmark = pytest.mark.live

CONNECTED, DISCONNECTED = SessionState.CONNECTED, SessionState.DISCONNECTED
EXPIRED, CLOSED = SessionState.EXPIRED, SessionState.CLOSED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED


# ---- watches ----


def test_a_watch_is_seen_before_the_data_that_fired_it(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner)
    owner.ask(session, Create("/a", b"0"), GetData("/a", watch=True))
    owner.seen.clear()
    for request in (SetData("/a", b"1"), GetData("/a")):
        session.submit(request, owner.seen.append)
    owner.until(lambda: len(owner.seen) == 3)
    event, written, read = owner.seen
    assert event == WatchedEvent(CHANGED, "/a")
    assert isinstance(written, Reply)
    assert isinstance(read, Reply)
    assert read.data == b"1"


def test_a_watch_fires_once_and_a_read_that_failed_sets_none(
    service: KazooService, owner: Owner
) -> None:
    session = connect(service, owner)
    owner.ask(session, GetData("/a", watch=True), GetChildren("/a", watch=True))
    owner.ask(session, Create("/a", b""), Exists("/a", watch=True))
    owner.ask(session, SetData("/a", b"1"), SetData("/a", b"2"), Delete("/a"))
    assert owner.events == [WatchedEvent(CHANGED, "/a")]


def test_watches_survive_an_outage_and_fire_for_what_was_missed(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    session = connect(service, owner)
    other, another = another_session(service)
    owner.ask(session, *[Create(f"/{name}", b"") for name in ("changed", "same", "gone", "parent")])
    owner.ask(session, *[GetData(f"/{name}", watch=True) for name in ("changed", "same", "gone")])
    owner.ask(session, Exists("/new", watch=True), Exists("/later", watch=True))
    owner.ask(session, GetChildren("/parent", watch=True), GetChildren("/same", watch=True))

    _break(tap, owner)
    another.ask(other, SetData("/changed", b"1"), Delete("/gone"), Create("/new", b""))
    another.ask(other, Create("/parent/child", b""))
    tap.heal()
    owner.until(lambda: len(owner.events) == 4)
    assert owner.states == [CONNECTED, DISCONNECTED, CONNECTED]
    assert {(event.type, event.path) for event in owner.events} == {
        (CHANGED, "/changed"),
        (EventType.NODE_DELETED, "/gone"),
        (EventType.NODE_CREATED, "/new"),
        (CHILDREN, "/parent"),
    }

    owner.seen.clear()
    another.ask(other, SetData("/same", b"1"), Create("/same/child", b""), Create("/later", b""))
    another.ask(other, SetData("/changed", b"2"), Delete("/parent/child"))
    owner.until(lambda: len(owner.events) == 3)
    owner.ask_one(session, Sync("/"))
    assert [(event.type, event.path) for event in owner.events] == [
        (CHANGED, "/same"),
        (CHILDREN, "/same"),
        (EventType.NODE_CREATED, "/later"),
    ]

    owner.seen.clear()
    _break(tap, owner)
    tap.heal()
    owner.until_state(CONNECTED)
    another.ask(other, SetData("/same", b"2"), SetData("/changed", b"3"), SetData("/new", b"1"))
    owner.ask_one(session, Sync("/"))
    assert owner.events == [], "a watch that has fired is not set again"


def test_watches_survive_many_at_once(service: KazooService, owner: Owner, tap: Tap) -> None:
    session = connect(service, owner)
    paths = [f"/node-{n:04d}" for n in range(2500)]
    owner.ask(session, *[Create(path, b"") for path in paths])
    owner.ask(session, *[GetData(path, watch=True) for path in paths])
    _break(tap, owner)
    tap.heal()
    owner.until_state(CONNECTED)
    owner.ask(session, *[SetData(path, b"1") for path in paths])
    assert [event.path for event in owner.events] == paths


def _break(tap: Tap, owner: Owner) -> None:
    """The connection ends, and no other is made until the tap is healed."""
    tap.cut()
    tap.hang_up()
    owner.until_state(DISCONNECTED)


# ---- outages and generations ----


def test_what_is_in_flight_at_a_disconnect_is_answered_once(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    session = connect(service, owner)
    owner.ask_one(session, Create("/a", b""))
    answered: list[int] = []
    codes: list[Code] = []
    for n in range(400):
        session.submit(SetData("/a", b""), partial(_note, n, codes, answered))
        if n == 200:
            tap.cut()
    tap.hang_up()
    owner.until(lambda: len(answered) == 400)
    owner.until_state(DISCONNECTED)
    tap.heal()
    owner.until_state(CONNECTED)
    owner.ask_one(session, Sync("/"))
    assert answered == list(range(400))
    assert set(codes) <= {Code.OK, Code.CONNECTION_LOSS}
    assert codes[-1] is Code.CONNECTION_LOSS


def _note(number: int, codes: list[Code], answered: list[int], reply: Reply) -> None:
    codes.append(reply.code)
    answered.append(number)


def test_replies_come_before_the_state_that_explains_them(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    session = connect(service, owner)
    tap.cut()
    session.submit(Exists("/a"), owner.seen.append)
    tap.hang_up()
    owner.until_state(DISCONNECTED)
    assert owner.seen == [CONNECTED, Reply(Code.CONNECTION_LOSS), DISCONNECTED]


class AtOnce(Owner):
    """An owner that reacts before the connection's thread continues: it sends a request as soon as
    the connection is lost."""

    session: KazooSession

    def __init__(self) -> None:
        super().__init__()
        self._told = threading.Condition()

    def post(self, action: Callable[[], None]) -> None:
        with self._told:
            action()
            self._told.notify_all()

    def until(self, done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        with self._told:
            assert self._told.wait_for(done, patience_s), self.seen

    def on_state(self, state: SessionState) -> None:
        super().on_state(state)
        if state is DISCONNECTED:
            self.session.submit(Exists("/"), self.seen.append)


def test_what_is_asked_when_the_connection_is_lost_waits_for_the_next_one(
    service: KazooService, tap: Tap
) -> None:
    owner = AtOnce()
    owner.session = connect(service, owner)
    tap.hang_up()
    owner.until(lambda: len(owner.seen) == 4)
    assert owner.states == [CONNECTED, DISCONNECTED, CONNECTED]
    (reply,) = (one for one in owner.seen if isinstance(one, Reply))
    assert reply.code is Code.OK


def test_a_queued_write_does_not_go_out_under_a_new_session(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    other, another = another_session(service)
    another.ask(other, Create("/a", b"before"))
    session = connect(service, owner, timeout_ms=T_MS)
    owner.ask(session, Create("/mine", b"", CreateMode.EPHEMERAL))
    another.ask_one(other, Exists("/mine", watch=True))

    _break(tap, owner)
    another.until(lambda: bool(another.events))
    writes: list[Code] = []
    for _ in range(20):
        session.submit(SetData("/a", b"after"), lambda reply: writes.append(reply.code))
    tap.heal()
    owner.until_state(EXPIRED)
    session.submit(SetData("/a", b"after"), lambda reply: writes.append(reply.code))
    owner.until(lambda: len(writes) == 21)
    assert set(writes[:20]) <= {Code.SESSION_EXPIRED, Code.CONNECTION_LOSS}
    assert writes[20] is Code.SESSION_EXPIRED
    assert session.join(5)

    successor = connect(service, Owner(), "broker-1")
    assert successor.session_id != session.session_id
    read = another.ask_one(other, GetData("/a"))
    assert read.data == b"before"
    assert read.stat is not None
    assert read.stat.version == 0
    assert owner.states == [CONNECTED, DISCONNECTED, EXPIRED]


def test_expiry_is_learnt_from_the_server_only(tmp_path: Path, owner: Owner) -> None:
    """A server that was away for longer than the session gives it a full time-out again."""
    timeout_ms = 3 * T_MS  # the client has to be back before it, on a busy machine too
    with ExitStack() as stack:
        own = stack.enter_context(EmbeddedServer(tmp_path, tick_ms=3 * TICK_MS))
        service = stack.enter_context(closing(KazooService(own.address, QUICK)))
        session = connect(service, owner, timeout_ms=timeout_ms)
        number = session.session_id
        owner.ask(session, Create("/a", b"", CreateMode.EPHEMERAL), GetData("/a", watch=True))
        own.stop()
        owner.until_state(DISCONNECTED)
        owner.idle_for(1.5 * timeout_ms / 1000)
        assert owner.states == [CONNECTED, DISCONNECTED]
        start_unwatched(own, service, "broker-1")
        owner.until_state(CONNECTED)
        owner.ask_one(session, SetData("/a", b"1"))
        assert session.session_id == number
        assert owner.events == [WatchedEvent(CHANGED, "/a")]


def test_a_server_that_stands_still_is_noticed_after_two_thirds(
    tmp_path: Path, owner: Owner
) -> None:
    with ExitStack() as stack:
        own = stack.enter_context(EmbeddedServer(tmp_path, tick_ms=TICK_MS))
        service = stack.enter_context(closing(KazooService(own.address, QUICK)))
        session = connect(service, owner, timeout_ms=T_MS)
        own.pause()
        began = time.monotonic()
        assert owner.ask_one(session, Exists("/")).code is Code.CONNECTION_LOSS
        assert 0.3 * T_MS < (time.monotonic() - began) * 1000 < T_MS + LATE_MS
        own.resume()
        owner.until(lambda: owner.states[-1] in (CONNECTED, EXPIRED))


def test_an_abandoned_session_does_not_wait_for_its_connect(owner: Owner) -> None:
    with reserve(0) as reservation:
        host, port = reservation.getsockname()
    with UnresponsiveServer(host, port) as server:
        service = KazooService(parse_address(f"{host}:{port}"), QUICK)
        session = service.open_session("broker-1", 60_000, owner, owner)
        while not server.has_connecting(os.getpid()):
            owner.idle_for(0.01)
        service.close()
    assert session.join(0)
    assert owner.states == []


# ---- the gate: what pause and cut do; a separate process and a tap do the same elsewhere ----


def test_a_short_pause_is_not_noticed(service: KazooService, owner: Owner) -> None:
    session = connect(service, owner, timeout_ms=10 * T_MS)
    gate = service.gate("broker-1")
    owner.ask(session, Create("/a", b""), GetData("/a", watch=True))
    other, another = another_session(service)
    gate.pause()
    replies: list[Reply] = []
    session.submit(Exists("/a"), replies.append)
    another.ask_one(other, SetData("/a", b"1"))
    owner.idle_for(0.3)
    assert replies == []
    assert owner.events == []
    gate.resume()
    owner.until(lambda: len(replies) == 1)
    assert owner.events == [WatchedEvent(CHANGED, "/a")]
    assert owner.states == [CONNECTED]


def test_while_paused_nothing_passes_in_either_direction(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    session = connect(service, owner, timeout_ms=T_MS)
    owner.ask(session, Create("/mine", b"", CreateMode.EPHEMERAL))
    other, another = another_session(service)
    another.ask_one(other, Exists("/mine", watch=True))
    service.gate("broker-1").pause()
    pings, began = tap.pings, time.monotonic()
    session.submit(SetData("/mine", b"1"), owner.seen.append)
    another.until(lambda: bool(another.events))
    waited_ms = (time.monotonic() - began) * 1000
    assert another.events == [WatchedEvent(EventType.NODE_DELETED, "/mine")]
    assert tap.pings == pings
    assert 2 / 3 * T_MS - 50 < waited_ms < T_MS + 3 * TICK_MS + LATE_MS
    assert owner.states == [CONNECTED]
    service.gate("broker-1").resume()
    owner.until_state(EXPIRED)
    assert owner.seen == [CONNECTED, Reply(Code.CONNECTION_LOSS), DISCONNECTED, EXPIRED]


def test_an_idle_session_is_kept_by_its_pings(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    connect(service, owner, timeout_ms=T_MS)
    owner.idle_for(2.5 * T_MS / 1000)
    assert owner.states == [CONNECTED]
    assert 5 <= tap.pings <= 9  # one each T/3


@pytest.mark.parametrize("means", ["gate", "tap"])
def test_a_cut_within_the_session(
    service: KazooService, owner: Owner, tap: Tap, means: str
) -> None:
    """Noticed after 2T/3; healed within T the same session continues, with its watches."""
    link = service.gate("broker-1") if means == "gate" else tap
    session = connect(service, owner, timeout_ms=3 * T_MS)
    owner.ask(session, Create("/a", b""), GetData("/a", watch=True))
    number = session.session_id
    link.cut()
    session.submit(Exists("/a"), owner.seen.append)
    owner.until_state(DISCONNECTED)
    assert owner.seen[-2:] == [Reply(Code.CONNECTION_LOSS), DISCONNECTED]
    link.heal()
    owner.until_state(CONNECTED)
    owner.ask_one(session, SetData("/a", b"1"))
    assert session.session_id == number
    assert owner.events == [WatchedEvent(CHANGED, "/a")]


@pytest.mark.parametrize("means", ["cut", "pause"])
def test_a_closed_gate_lets_nothing_out(
    service: KazooService, owner: Owner, tap: Tap, means: str
) -> None:
    """Not one request, from the moment on at which the call returns, whatever is in flight."""
    session = connect(service, owner)
    gate = service.gate("broker-1")
    close, reopen = (gate.cut, gate.heal) if means == "cut" else (gate.pause, gate.resume)
    owner.ask_one(session, Create("/a", b""))
    replies: list[Reply] = []
    for _ in range(20):
        for n in range(100):
            session.submit(SetData("/a", b""), replies.append)
            if n == 50:
                close()
                last_sent = session._connection._last_sent_s
        owner.idle_for(0.02)
        assert session._connection._last_sent_s == last_sent
        reopen()
    owner.until(lambda: len(replies) == 2000)
    assert {reply.code for reply in replies} == {Code.OK}


def test_a_request_of_an_earlier_generation_is_not_sent(
    service: KazooService, owner: Owner
) -> None:
    session = connect(service, owner)
    owner.ask_one(session, Create("/a", b""))
    session.queue.append(_Entry(SetData("/a", b"x"), owner.seen.append, session.generation - 1))
    read = owner.ask_one(session, GetData("/a"))
    assert owner.seen == [CONNECTED, Reply(Code.SESSION_EXPIRED)]
    assert read.data == b""


@pytest.mark.parametrize("means", ["gate", "tap"])
def test_a_cut_longer_than_the_session(
    service: KazooService, owner: Owner, tap: Tap, means: str
) -> None:
    link = service.gate("broker-1") if means == "gate" else tap
    session = connect(service, owner, timeout_ms=T_MS)
    owner.ask(session, Create("/mine", b"", CreateMode.EPHEMERAL))
    other, another = another_session(service)
    another.ask_one(other, Exists("/mine", watch=True))
    link.cut()
    another.until(lambda: bool(another.events))
    owner.until_state(DISCONNECTED)
    owner.idle_for(0.3)
    assert owner.states == [CONNECTED, DISCONNECTED]
    link.heal()
    owner.until_state(EXPIRED)


# ---- the ends of a session ----


def test_close_removes_the_ephemerals_and_answers_what_was_asked(
    service: KazooService, owner: Owner
) -> None:
    session = connect(service, owner)
    other, another = another_session(service)
    session.submit(Create("/mine", b"", CreateMode.EPHEMERAL), owner.seen.append)
    session.close()
    session.submit(Exists("/mine"), owner.seen.append)
    owner.until_state(CLOSED)
    codes = [one.code for one in owner.seen if isinstance(one, Reply)]
    assert sorted(codes) == [Code.CONNECTION_LOSS, Code.OK]
    assert another.ask_one(other, Exists("/mine")).code is Code.NO_NODE
    session.submit(Exists("/mine"), owner.seen.append)
    owner.run_what_is_there()
    assert owner.seen[-1] == Reply(Code.SESSION_EXPIRED)
    assert session.join(5)


def test_close_without_a_connection_ends_at_once(
    service: KazooService, owner: Owner, tap: Tap
) -> None:
    session = connect(service, owner)
    _break(tap, owner)
    session.submit(Exists("/"), owner.seen.append)
    session.close()
    tap.close()
    owner.until_state(CLOSED)
    assert Reply(Code.CONNECTION_LOSS) in owner.seen
    assert session.join(5)


def test_abandon_is_silent_and_leaves_the_session_to_the_server(
    service: KazooService, owner: Owner
) -> None:
    session = connect(service, owner, timeout_ms=T_MS)
    other, another = another_session(service)
    owner.ask(session, Create("/mine", b"", CreateMode.EPHEMERAL), Exists("/mine", watch=True))
    another.ask_one(other, Exists("/mine", watch=True))
    for _ in range(50):
        session.submit(Exists("/mine"), owner.seen.append)
    answer = owner.next_action()
    owner.seen.clear()
    session.abandon()
    answer()
    began = time.monotonic()
    assert session.join(5)
    assert another.ask_one(other, Exists("/mine")).code is Code.OK
    another.until(lambda: bool(another.events))
    assert (time.monotonic() - began) * 1000 > T_MS / 2
    owner.run_what_is_there()
    assert owner.seen == []


def test_abandon_wherever_the_session_stands(
    service: KazooService, owner: Owner, tap: Tap, address: Address
) -> None:
    """Paused, cut, waiting to connect, and connecting to a dead address: its thread and sockets are
    closed."""
    paused = connect(service, owner, "paused")
    service.gate("paused").pause()
    cut = connect(service, owner, "cut")
    service.gate("cut").cut()
    waiting = connect(service, owner)
    _break(tap, owner)
    service.route("nobody", Address((("127.0.0.1", 1),)))
    nobody = service.open_session("nobody", T_MS, owner, owner)
    for session in (paused, cut, waiting, nobody):
        session.abandon()
        assert session.join(5)


def test_a_session_time_out_that_the_server_clamps_is_an_error(
    service: KazooService, owner: Owner
) -> None:
    session = service.open_session("broker-1", 90_000, owner, owner)
    with pytest.raises(SessionTimeoutClamped, match="90000 ms asked, the server grants 60000"):
        owner.until(lambda: bool(owner.states))
    owner.until_state(CLOSED)
    assert session.join(5)


def test_a_hundred_sessions_in_one_process(service: KazooService, owner: Owner) -> None:
    before = threading.active_count()
    sessions = [service.open_session(f"broker-{n}", 10_000, owner, owner) for n in range(100)]
    owner.until(lambda: owner.states == [CONNECTED] * 100)
    assert threading.active_count() - before == 100
    mine = Create("/e-", b"", CreateMode.EPHEMERAL_SEQUENTIAL)
    assert all(owner.ask_one(session, mine).code is Code.OK for session in sessions)
    for session in sessions:
        session.close()
    owner.until(lambda: owner.states.count(CLOSED) == 100)
    assert all(session.join(5) for session in sessions)


def test_gates_of_different_processes_are_different(service: KazooService, owner: Owner) -> None:
    sessions: list[KazooSession] = [connect(service, owner, f"broker-{n}") for n in (1, 2)]
    service.gate("broker-1").pause()
    assert owner.ask_one(sessions[1], Sync("/")).code is Code.OK
    service.gate("broker-1").resume()
    assert owner.ask_one(sessions[0], Sync("/")).code is Code.OK
