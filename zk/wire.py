"""The port between a broker's ZooKeeper client and a ZooKeeper service, real or modelled.

One `Session` object is one ZooKeeper session of one process: never reused after it expired. All
callbacks are made on the thread (kernel) that owns the broker, in the order that ZooKeeper
guarantees: a client sees a watch event before it can read the data that fired it. Nothing here
knows brokers, controllers or traces.

The scheduling that the model needs comes in through `Lane`: an ordered executor of one process,
which is paused with the process. The kernel's `Lane` satisfies it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Literal, Protocol, TypeVar

from zk.ops import Reply, Request, SessionState, Transaction, WatchedEvent

OnReply = Callable[[Reply], None]

When = Literal["before", "after"]
"""Where a connection that is lost at an operation breaks: before the operation was applied, or
after, so that the answer is lost."""


class Direction(Enum):
    """A direction of a connection."""

    TO_SERVER = auto()
    TO_CLIENT = auto()


Call = TypeVar("Call", bound=Callable[..., object])


def labelled(label: str) -> Callable[[Call], Call]:
    """Declare what a callback on a lane is called where what happens next is chosen. Schedules
    keep the label in their files, so it stays when the function is renamed."""

    def declare(call: Call) -> Call:
        call.label = label  # type: ignore[attr-defined]
        return call

    return declare


class Timer(Protocol):
    """Something scheduled that can be called off."""

    def cancel(self) -> None: ...


class Lane(Protocol):
    """An ordered executor of one process. While the process is paused nothing runs; what was posted
    or fell due runs when it resumes, in the order in which it was posted; after a crash never."""

    def now_us(self) -> int:
        """Microseconds since the world began."""
        ...

    def post(self, action: Callable[[], None]) -> None:
        """Run `action` now, behind what was posted before."""
        ...

    def call_later(self, delay_us: int, action: Callable[[], None]) -> Timer:
        """Run `action` in `delay_us`, or when the process resumes."""
        ...


class Listener(Protocol):
    """What a session tells its owner; called on the owner's lane."""

    def on_watch(self, event: WatchedEvent) -> None: ...

    def on_state(self, state: SessionState) -> None: ...


class Session(Protocol):
    """One ZooKeeper session. Requests are sent in order; each gets exactly one reply: the server's,
    or CONNECTION_LOSS / SESSION_EXPIRED when the connection or the session ended before it."""

    @property
    def session_id(self) -> int:
        """0 until the server has answered the first connect."""
        ...

    @property
    def linked(self) -> bool:
        """Whether ZooKeeper.getState says CONNECTED: still so when the connection is lost, until
        the next attempt begins (ClientCnxn startConnect). A request made meanwhile waits for it."""
        ...

    def submit(self, request: Request, on_reply: OnReply) -> None: ...

    def close(self) -> None:
        """Orderly end: closeSession is sent, the server removes the ephemerals."""
        ...

    def abandon(self) -> None:
        """The process died: its sockets close, nothing is sent, no callback is made any more."""
        ...


class Service(Protocol):
    """A ZooKeeper service as one client process reaches it."""

    def open_session(self, client: str, timeout_ms: int, lane: Lane, listener: Listener) -> Session:
        """Start to connect; `listener.on_state(CONNECTED)` follows when the server has answered.
        `client` names the process (`broker-1`); `timeout_ms` is the session time-out that is asked
        for."""
        ...


class Observer(Protocol):
    """Who watches the wire and the log: the model calls it as things happen, the live world feeds
    it from the tap and from the server's own log. `at_us` is the time on the world's clock."""

    def on_request(self, at_us: int, client: str, request: Request | str) -> None:
        """A request passed on the wire between `client` and the server. A string names what is no
        request of the client's own: `connect`, `setWatches`, `closeSession` (pings are not
        reported)."""
        ...

    def on_transaction(self, at_us: int, transaction: Transaction) -> None:
        """The server applied (and logged) a transaction."""
        ...
