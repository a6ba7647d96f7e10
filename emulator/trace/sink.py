"""Where events go: kept in memory, handed to listeners, written as lines.

The sink numbers events; their order is the order of the trace. A listener (an invariant, a metric,
a progress line) sees each event once, right after it happened. A file is written line by line, so
that what happened before a crash can be read up to the last line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any], None]


class Sink:
    """A trace in the making."""

    __slots__ = ("_listeners", "_open", "events", "next_seq")

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.next_seq = 0
        self._listeners: list[Listener] = []
        self._open = True

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event from now on."""
        self._listeners.append(listener)

    def append(self, event: Any) -> None:
        """Take an event that carries `next_seq`."""
        if not self._open:
            return
        self.events.append(event)
        self.next_seq += 1
        for listener in self._listeners:
            listener(event)

    def close(self) -> None:
        """Take no more events (the world is being taken down)."""
        self._open = False
