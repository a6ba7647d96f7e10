"""What travels between the model's client and its server besides requests, replies and watch
events.

The words of ZooKeeper's connection protocol (ConnectRequest, ping, SetWatches, closeSession), as
small frozen structs; plain data, known to both halves.
"""

from __future__ import annotations

import msgspec

from zk.ops import Reply, Request, WatchedEvent


class Connect(msgspec.Struct, frozen=True, gc=False):
    """The first packet of a connection: session 0 asks for a new one."""

    session_id: int
    timeout_ms: int
    last_zxid: int


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The answer to Connect; `timeout_ms` 0 says that the session has expired."""

    session_id: int
    timeout_ms: int


class Ping(msgspec.Struct, frozen=True, gc=False):
    """Sign of life, both ways."""


class SetWatches(msgspec.Struct, frozen=True, gc=False):
    """Re-arm these watches; fire those that missed a change after `zxid`."""

    zxid: int
    data: tuple[str, ...]
    exist: tuple[str, ...]
    child: tuple[str, ...]


class CloseSession(msgspec.Struct, frozen=True, gc=False):
    """Orderly end of the session."""


class EndOfStream(msgspec.Struct, frozen=True, gc=False):
    """The other side closed the connection."""


PING = Ping()
CLOSE_SESSION = CloseSession()
END_OF_STREAM = EndOfStream()

ToServer = Request | Connect | Ping | SetWatches | CloseSession | EndOfStream
ToClient = Reply | WatchedEvent | Connected | Ping | EndOfStream
