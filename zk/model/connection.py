"""The server's side of sessions and connections.

A session outlives its connections. This module knows no faults and no clock; `zk.model.ensemble`
decides how packets are processed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from zk.model.follower import Follower, nothing_to_apply
from zk.model.link import Link, Pipe
from zk.model.packets import ToClient, ToServer
from zk.wire import Direction, Lane


class ServerSession:
    """The server's record of a session; `deadline_ms` is on the server's clock, at a tick."""

    __slots__ = ("client", "connection", "deadline_ms", "session_id", "timeout_ms")

    def __init__(self, session_id: int, client: str, timeout_ms: int) -> None:
        self.session_id = session_id
        self.client = client
        self.timeout_ms = timeout_ms
        self.deadline_ms = 0
        self.connection: Connection | None = None


class Connection:
    """The server's end of one connection. `follower` is the server at this end; None: the
    leader."""

    __slots__ = (
        "_on_packet",
        "_parked",
        "_waiting",
        "follower",
        "link",
        "session",
        "to_client",
        "to_server",
    )

    def __init__(
        self,
        link: Link,
        to_client: Pipe[ToClient],
        lane: Lane,
        on_packet: Callable[[Connection, ToServer], None],
        on_pass: Callable[[ToServer], None],
    ) -> None:
        self.link = link
        self.to_client = to_client
        self.to_server = Pipe(link, lane, Direction.TO_SERVER, partial(on_packet, self), on_pass)
        self.session: ServerSession | None = None
        self.follower: Follower | None = None
        self._on_packet = on_packet
        self._waiting = False
        self._parked: deque[ToServer] = deque()

    def park(self, packet: ToServer) -> bool:
        """Whether `packet` has to wait for the follower: all requests of a session wait behind its
        write (CommitProcessor.java 3.5.9)."""
        if self._waiting:
            self._parked.append(packet)
        return self._waiting

    def when_applied(self, then: Callable[[], None]) -> None:
        """Call `then` once this connection's server has applied everything that the leader has."""
        if self.follower is None:
            then()
            return

        def resume() -> None:
            self._waiting = False
            then()
            # A parked packet may be a write: the remaining ones then wait for it.
            while self._parked and not self._waiting:
                self._on_packet(self, self._parked.popleft())

        self._waiting = True
        self.follower.commit(nothing_to_apply, resume)
