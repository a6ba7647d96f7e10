"""Where events go: kept in memory, handed to listeners, written as lines.

The sink numbers events; their order is the order of the trace. It keeps them all, or, where they
are written to a file, up to a limit: a longer run has its events there alone. A listener (an
invariant, a metric, a progress line) sees each event once, right after it happened. A file is
written line by line, so that what happened before a crash can be read up to the last line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any], None]


class Sink:
    """A trace in the making."""

    __slots__ = ("_by_kind", "_listeners", "_open", "events", "kept_max", "next_seq")

    def __init__(self, kept_max: int | None = None) -> None:
        """`kept_max`: with more events than these, `events` begins again, empty."""
        self.events: list[Any] = []
        self.kept_max = kept_max
        self.next_seq = 0
        self._listeners: list[Listener] = []
        self._by_kind: dict[type, tuple[Listener, ...]] = {}
        self._open = True

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event from now on; one that can say who of its parts wants a
        kind of event (`of_kind`) is asked once for each, and they are called."""
        self._listeners.append(listener)
        self._by_kind.clear()

    def append(self, event: Any) -> None:
        """Take an event that carries `next_seq`."""
        if not self._open:
            return
        self.events.append(event)
        if self.kept_max is not None and len(self.events) > self.kept_max:
            self.events.clear()
        self.next_seq += 1
        try:
            calls = self._by_kind[type(event)]
        except KeyError:
            calls = self._calls(type(event))
        for call in calls:
            call(event)

    def _calls(self, kind: type) -> tuple[Listener, ...]:
        """The listeners for a kind of event, in the order in which they were added."""
        calls: list[Listener] = []
        for listener in self._listeners:
            of_kind = getattr(listener, "of_kind", None)
            calls += (listener,) if of_kind is None else of_kind(kind)
        self._by_kind[kind] = tuple(calls)
        return self._by_kind[kind]

    @property
    def has_all(self) -> bool:
        """`events` has every event."""
        return len(self.events) == self.next_seq

    def close(self) -> None:
        """Accept no more events: the world is shutting down."""
        self._open = False
