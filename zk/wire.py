"""The port between a broker's ZooKeeper client and a ZooKeeper service, real or modelled.

A `Session` object is one ZooKeeper session of one process; it is not reused after it has expired.
All callbacks run on the thread (kernel) that owns the broker, in the order that ZooKeeper
guarantees: a client sees a watch event before it can read the data that fired it. Nothing here
knows brokers, controllers or traces.

The model gets its scheduling through `Lane`: an ordered executor of one process, which pauses with
the process. The kernel's `Lane` implements it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Literal, Protocol, TypeVar

from zk.ops import Reply, Request, SessionState, Transaction, WatchedEvent

OnReply = Callable[[Reply], None]

When = Literal["before", "after"]
"""Where a dropped connection breaks: before the operation is applied, or after it, so that the
response is lost."""


class Direction(Enum):
    """A direction of a connection."""

    TO_SERVER = auto()
    TO_CLIENT = auto()


Call = TypeVar("Call", bound=Callable[..., object])


def labelled(label: str) -> Callable[[Call], Call]:
    """Declare the label under which a callback on a lane appears in schedules. Stored schedules
    contain the label, so it stays when the function is renamed."""

    def declare(call: Call) -> Call:
        call.label = label  # type: ignore[attr-defined]
        return call

    return declare


class Timer(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None: ...


class Lane(Protocol):
    """An ordered executor of one process. While the process is paused nothing runs. Everything that
    was posted or fell due runs after the resume, in the order of posting; after a crash nothing
    runs.
    """

    def now_us(self) -> int:
        """Microseconds since the world started."""
        ...

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` after everything that was posted before."""
        ...

    def call_later(self, delay_us: int, action: Callable[[], None]) -> Timer:
        """Run `action` in `delay_us`; a paused process runs it after its resume."""
        ...


class Listener(Protocol):
    """The callbacks of a session, called on the owner's lane."""

    def on_watch(self, event: WatchedEvent) -> None: ...

    def on_state(self, state: SessionState) -> None: ...


class Session(Protocol):
    """One ZooKeeper session. Requests are sent in order; each gets exactly one response: the
    server's, or CONNECTION_LOSS / SESSION_EXPIRED if the connection or session ended first."""

    @property
    def session_id(self) -> int:
        """0 until the server has responded to the first connect."""
        ...

    @property
    def linked(self) -> bool:
        """Whether ZooKeeper.getState returns CONNECTED. After the connection is lost it still does
        until the next attempt starts (ClientCnxn startConnect); requests made meanwhile wait for
        that attempt.
        """
        ...

    def submit(self, request: Request, on_reply: OnReply) -> None: ...

    def close(self) -> None:
        """Orderly end: closeSession is sent, and the server removes the ephemerals."""
        ...

    def abandon(self) -> None:
        """The process died: its sockets close, nothing is sent, and no callback is called any
        more."""
        ...


class Service(Protocol):
    """A ZooKeeper service as one client process reaches it."""

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        """Start to connect; `listener.on_state(CONNECTED)` is called when the server has responded.
        `client` names the process (`broker-1`); `timeout_ms` is the requested session timeout."""
        ...


class Observer(Protocol):
    """Observes the wire and the log. The model calls it directly; the live world feeds it from the
    tap and from the server's log. `at_us` is the time on the world's clock."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed between `client` and the server. A string names a packet that is not a
        request of the client's code: `connect`, `setWatches`, `closeSession` (pings are not
        reported).
        """
        ...

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        """The server has applied and logged a transaction."""
        ...
