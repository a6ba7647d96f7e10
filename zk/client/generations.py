"""Call-backs of one session among several: what the sessions before it still say is not heard.

Owns the one comparison; who opens sessions counts them and says which is the current one.
"""

from __future__ import annotations

from typing import Protocol

from zk.ops import SessionState, WatchedEvent


class Owner(Protocol):
    """Who opened the session."""

    def is_current(self, generation: int) -> bool: ...

    def on_watch(self, event: WatchedEvent) -> None: ...

    def on_state(self, state: SessionState) -> None: ...


class SessionListener:
    """`zk.wire.Listener` of the session of that number."""

    def __init__(self, owner: Owner, generation: int) -> None:
        self._owner, self._generation = owner, generation

    def on_watch(self, event: WatchedEvent) -> None:
        if self._owner.is_current(self._generation):
            self._owner.on_watch(event)

    def on_state(self, state: SessionState) -> None:
        if self._owner.is_current(self._generation):
            self._owner.on_state(state)
