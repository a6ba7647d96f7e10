"""Packets between the model's client and server, apart from requests, responses and watch events.

They are those of ZooKeeper's connection protocol (ConnectRequest, ping, SetWatches, closeSession),
as small frozen structs known to both sides.
"""

from __future__ import annotations

import msgspec

from zk.ops import Reply, Request, WatchedEvent


class Connect(msgspec.Struct, frozen=True, gc=False):
    """The first packet of a connection; session 0 requests a new session."""

    session_id: int
    timeout_ms: int
    last_zxid: int


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The response to Connect; `timeout_ms` 0 means that the session has expired."""

    session_id: int
    timeout_ms: int


class Ping(msgspec.Struct, frozen=True, gc=False):
    """Sign of life, in both directions."""


class SetWatches(msgspec.Struct, frozen=True, gc=False):
    """Set these watches again; those that missed a change after `zxid` fire at once."""

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
