"""A session around another one: what every such wrapper passes on as it is.

Owns nothing but that; who wraps says what becomes of requests and of the end.
"""

from __future__ import annotations

from zk.wire import Session


class SessionAround:
    """`zk.wire.Session` without `submit` and `close`."""

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
