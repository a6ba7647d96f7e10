"""Base class of wrappers around a session.

Passes on everything except requests and the end of the session, which subclasses handle.
"""

from __future__ import annotations

from zk.wire import Session


class SessionAround:
    """A `zk.wire.Session` without `submit` and `close`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def linked(self) -> bool:
        return self._session.linked

    def abandon(self) -> None:
        self._session.abandon()
