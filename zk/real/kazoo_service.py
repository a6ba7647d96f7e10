"""A real ZooKeeper service (`zk.wire.Service`): sessions and links of a run's processes.

Owns each process's gate and route, and the closing of all sessions; `zk.real.kazoo_wire` implements
a session. Knows no emulator.
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
    """A real ZooKeeper service for the processes of one run (`zk.wire.Service`)."""

    def __init__(
        self,
        address: Address,
        times: ClientTimes | None = None,
        soon: Soon = lambda action: action(),
    ) -> None:
        """`soon` runs a send: at once, or before the owner's thread waits next (so that everything
        queued until then is one write, as with the Java client's thread)."""
        self._address, self._times, self._soon = address, times or ClientTimes(), soon
        self._gates: dict[str, Gate] = {}
        self._routes: dict[str, Address] = {}
        self._sessions: list[tuple[str, KazooSession]] = []
        self.expiries = Expiries(address)

    def gate(self, client: str) -> Gate:
        """The gate of one process, for all its present and future sessions."""
        return self._gates.setdefault(client, Gate())

    def route(self, client: str, servers: Address) -> None:
        """Route a process's future sessions through `servers` (a tap); the chroot stays the
        same."""
        self._routes[client] = msgspec.structs.replace(servers, chroot=self._address.chroot)

    def open_session(
        self, client: str, timeout_ms: int, lane: Lane, listener: Listener
    ) -> KazooSession:
        """If the server grants a timeout other than `timeout_ms`, SessionTimeoutClamped is raised
        on the lane; `zk.real.server.require_session_timeout` checks this beforehand."""
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

    @property
    def session_ids(self) -> list[int]:
        """Of the sessions that servers have granted and that are not over."""
        return [one.session_id for _, one in self._sessions if one.session_id and one.over is None]

    def expire(self, client: str) -> None:
        """Let the server expire the sessions of a process now; the process is not notified."""
        for who, session in self._sessions:
            if who == client and session.session_id and session.over is None:
                self.expiries.expire(session.session_id, session.password, session.timeout_ms)

    def close(self, timeout_s: float = 10.0, grace_s: float = 2.0) -> None:
        """Let closing sessions end in an orderly way, so that the server deletes their ephemeral
        znodes; then abandon the rest, and wait until all threads are gone."""
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
