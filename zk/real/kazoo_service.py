"""A real ZooKeeper service (`zk.wire.Service`): the sessions of a run's processes, and their links.

Owns each process's gate and route, and the end of all sessions; what a session does is
`zk.real.kazoo_wire`'s. Knows no emulator.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from zk.client.client_times import ClientTimes
from zk.real.expiry import Expiries
from zk.real.kazoo_wire import KazooSession
from zk.real.pause_gate import Gate
from zk.real.server import Address
from zk.wire import Lane, Listener

Soon = Callable[[Callable[[], None]], None]


class KazooService:
    """A real ZooKeeper service, as the processes of one run reach it (`zk.wire.Service`)."""

    def __init__(
        self,
        address: Address,
        times: ClientTimes | None = None,
        soon: Soon = lambda action: action(),
    ) -> None:
        """`soon` is asked to do what sends: at once, or before the owner's thread waits next (what
        was queued until then goes out in one write, as the Java client's thread would do it)."""
        self._address, self._times, self._soon = address, times or ClientTimes(), soon
        self._gates: dict[str, Gate] = {}
        self._routes: dict[str, Address] = {}
        self._sessions: list[tuple[str, KazooSession]] = []
        self.expiries = Expiries(address)

    def gate(self, client: str) -> Gate:
        """The gate of one process, for all sessions that it has or will have."""
        return self._gates.setdefault(client, Gate())

    def route(self, client: str, servers: Address) -> None:
        """Let a process's future sessions go through `servers` (a tap); the chroot stays ours."""
        self._routes[client] = msgspec.structs.replace(servers, chroot=self._address.chroot)

    def open_session(
        self, client: str, timeout_ms: int, lane: Lane, listener: Listener
    ) -> KazooSession:
        """If the server grants another time-out than `timeout_ms`, SessionTimeoutClamped is raised
        on the lane; `zk.real.server.require_session_timeout` tells it beforehand."""
        servers = self._routes.get(client, self._address)
        gate, times = self.gate(client), self._times
        session = KazooSession(
            servers, f"zk-{client}", timeout_ms, lane, listener, gate, times, self._soon
        )
        self._sessions = [
            (who, one) for who, one in self._sessions if one.over is None or not one.join(0)
        ]
        self._sessions.append((client, session))
        return session

    def expire(self, client: str) -> None:
        """Have the server end the sessions of a process now; the process learns it by itself."""
        for who, session in self._sessions:
            if who == client and session.session_id and session.over is None:
                self.expiries.expire(session.session_id, session.password, session.timeout_ms)

    def close(self, timeout_s: float = 10.0, grace_s: float = 2.0) -> None:
        """Sessions that are being closed may end in order, so that the server removes their
        ephemerals; then abandon what is left, and wait until all threads are gone."""
        self.expiries.close()
        until = time.monotonic() + grace_s
        sessions = [session for _, session in self._sessions]
        for session in sessions:
            if session.closing:
                session.join(max(0.0, until - time.monotonic()))
        for session in sessions:
            if session.over is None:
                session.abandon()
        late = [session for session in sessions if not session.join(timeout_s)]
        assert not late, f"{len(late)} ZooKeeper sessions did not end within {timeout_s} s"
