"""Callbacks of consecutive sessions: those of earlier sessions are ignored.

Owns this one comparison; the owner counts its sessions and knows the current one.
"""

from __future__ import annotations

from typing import Protocol

from zk.ops import SessionState, WatchedEvent


class Owner(Protocol):
    """The object that opened the session."""

    def is_current(self, generation: int) -> bool: ...

    def on_watch(self, event: WatchedEvent) -> None: ...

    def on_state(self, state: SessionState) -> None: ...


class SessionListener:
    """`zk.wire.Listener` of the session with that number."""

    def __init__(self, owner: Owner, generation: int) -> None:
        self._owner, self._generation = owner, generation

    def on_watch(self, event: WatchedEvent) -> None:
        if self._owner.is_current(self._generation):
            self._owner.on_watch(event)

    def on_state(self, state: SessionState) -> None:
        if self._owner.is_current(self._generation):
            self._owner.on_state(state)
