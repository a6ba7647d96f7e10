"""A real session at the pace of a JVM: the time that a broker's own ZooKeeper client takes.

Our client on loopback needs 1 ms for work that takes cold Java code 10 ms, which can decide a race
between two brokers. To reproduce a recording's times, each request is sent when it would arrive in
virtual time, and its response is delivered no earlier than there. The real time of the server and
the network counts towards that delay. ZooKeeper's order is preserved: among requests, and among
responses, watch events and session states. This module knows neither brokers nor servers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from zk.model.link import Latency
from zk.ops import Multi, Reply, Request, SessionState, WatchedEvent
from zk.real.session_wrapper import SessionAround
from zk.wire import Lane, Listener, OnReply, Service, Session


class _Line:
    """One direction: runs each action at its time, but never before an earlier one."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._until_us, self._waiting = lane, 0, 0

    def at(self, due_us: int, action: Callable[[], None]) -> None:
        now = self._lane.now_us()
        self._until_us = max(self._until_us, due_us)
        # Timers fire slightly late, so while one is pending, actions that are already due must
        # queue behind it.
        if not self._waiting and self._until_us <= now:
            action()
            return

        def act() -> None:
            self._waiting -= 1
            action()

        self._waiting += 1
        self._lane.call_later(max(0, self._until_us - now), act)


class JvmListener:
    """Between the session and its owner: delivers watch events and session states in order."""

    def __init__(self, listener: Listener, lane: Lane, latency: Latency, client: str) -> None:
        self._listener, self._lane = listener, lane
        self._latency, self._client = latency, client
        self.back = _Line(lane)

    def on_watch(self, event: WatchedEvent) -> None:
        due_us = self._lane.now_us() + self._latency("zk_watch", self._client)
        self.back.at(due_us, partial(self._listener.on_watch, event))

    def on_state(self, state: SessionState) -> None:
        self.back.at(0, partial(self._listener.on_state, state))


class JvmSession(SessionAround):
    """A `zk.wire.Session` that delays another one."""

    def __init__(
        self, session: Session, listener: JvmListener, lane: Lane, latency: Latency, client: str
    ) -> None:
        super().__init__(session)
        self._lane = lane
        self._latency, self._client = latency, client
        self._out, self._back = _Line(lane), listener.back
        self._abandoned = False

    def submit(self, request: Request, on_reply: OnReply) -> None:
        """Both delays are drawn now, in the order in which the model draws them."""
        draw, client = self._latency, self._client
        process_us = draw("zk_process", client)
        out_us = draw("zk_multi" if isinstance(request, Multi) else "zk_request", client)

        def send() -> None:
            if self._abandoned:
                return
            due_us = self._lane.now_us() + draw("zk_reply", client)

            def replied(reply: Reply) -> None:
                self._back.at(due_us, partial(on_reply, reply))

            self._session.submit(request, replied)

        self._out.at(self._lane.now_us() + out_us + process_us, send)

    def close(self) -> None:
        """Close after all requests that were sent before."""
        self._out.at(0, self._session.close)

    def abandon(self) -> None:
        self._abandoned = True
        super().abandon()


class JvmService:
    """A `zk.wire.Service` whose sessions have a JVM's delays."""

    def __init__(self, service: Service, latency: Latency) -> None:
        self._service, self._latency = service, latency

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        paced = JvmListener(listener, lane, self._latency, client)
        session = self._service.open_session(client, timeout_ms, lane, paced)
        return JvmSession(session, paced, lane, self._latency, client)
