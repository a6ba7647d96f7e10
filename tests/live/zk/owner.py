"""A process that owns ZooKeeper sessions, as tests play it: a lane, a listener, and waiting."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

from zk.client.client_times import ClientTimes
from zk.errors import Code
from zk.ops import Reply, Request, SessionState, WatchedEvent
from zk.real.kazoo_service import KazooService
from zk.real.kazoo_wire import KazooSession
from zk.real.server import EmbeddedServer
from zk.wire import Session, Timer

PATIENCE_S = 60.0
TICK_MS = 100
T_MS = 1200
"""A session time-out for tests in which it runs out."""

LATE_MS = 3000
"""How late an answer may be on a machine that has much else to do; far below `PATIENCE_S`."""

QUICK = ClientTimes(reconnect_wait_ms=40, reconnect_jitter_ms=40, ping_slack_ms=40)


class Owner:
    """Lane and listener of one process. Nothing runs but inside `until`, on the test's thread."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.seen: list[SessionState | WatchedEvent | Reply] = []

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def post(self, action: Callable[[], None]) -> None:
        self._inbox.put(action)

    def call_later(self, delay_us: int, action: Callable[[], None]) -> Timer:
        raise AssertionError("the wire to a real server needs no timers of its owner")

    def on_watch(self, event: WatchedEvent) -> None:
        self.seen.append(event)

    def on_state(self, state: SessionState) -> None:
        self.seen.append(state)

    @property
    def states(self) -> list[SessionState]:
        return [one for one in self.seen if isinstance(one, SessionState)]

    @property
    def events(self) -> list[WatchedEvent]:
        return [one for one in self.seen if isinstance(one, WatchedEvent)]

    def until(self, done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Run what is posted until `done`; AssertionError when it takes too long."""
        deadline = time.monotonic() + patience_s
        while not done():
            try:
                self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))()
            except queue.Empty:
                raise AssertionError(f"waited {patience_s} s; seen: {self.seen}") from None

    def until_state(self, state: SessionState) -> None:
        self.until(lambda: bool(self.states) and self.states[-1] is state)

    def run_what_is_there(self) -> None:
        while not self._inbox.empty():
            self._inbox.get()()

    def next_action(self) -> Callable[[], None]:
        """The first posted action, once there is one; not run yet."""
        return self._inbox.get(timeout=PATIENCE_S)

    def idle_for(self, seconds: float) -> None:
        """Run posted actions for this long, to show that something does *not* happen."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._inbox.get(timeout=left)()
            except queue.Empty:
                return

    def ask(self, session: Session, *requests: Request) -> list[Reply]:
        """Send all of them at once; their replies, in the order in which they came."""
        replies: list[Reply] = []
        for request in requests:
            session.submit(request, replies.append)
        self.until(lambda: len(replies) == len(requests))
        return replies

    def ask_one(self, session: Session, request: Request) -> Reply:
        return self.ask(session, request)[0]


def connect(
    service: KazooService, owner: Owner, client: str = "broker-1", timeout_ms: int = 10_000
) -> KazooSession:
    """A session that is connected."""
    times = owner.states.count(SessionState.CONNECTED)
    session = service.open_session(client, timeout_ms, owner, owner)
    owner.until(lambda: owner.states.count(SessionState.CONNECTED) > times)
    return session


def start_unwatched(server: EmbeddedServer, service: KazooService, *clients: str) -> None:
    """Start a server that was stopped while no client knocks: who reaches it after it listens and
    before it has its data gets neither an answer nor an end (ZooKeeper 3.9: NullPointerException
    in NIOServerCnxn.close), and waits for a whole session time-out."""
    gates = [service.gate(client) for client in clients]
    for gate in gates:
        gate.pause()
    server.start()
    for gate in gates:
        gate.resume()


def another_session(service: KazooService) -> tuple[KazooSession, Owner]:
    """Another process's session, `broker-2`, and its owner."""
    owner = Owner()
    return connect(service, owner, "broker-2"), owner


class Deaf:
    """An observer that does not listen."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None: ...
    def on_reply(self, client: str, request: Request | str, code: Code, us: int) -> None: ...
