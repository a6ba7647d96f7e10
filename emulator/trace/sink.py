"""Collects events: numbers them, keeps them in memory, passes them to listeners.

The sink numbers events in the order of the trace. It keeps all of them, or, when a listener writes
them to a file, only up to a limit; a longer run then has its events only in the file. A listener
(an invariant, a metric, a progress line) sees each event once, right after it happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any], None]


class Sink:
    """A trace that is being written."""

    __slots__ = ("_by_kind", "_listeners", "_open", "events", "kept_max", "next_seq")

    def __init__(self, kept_max: int | None = None) -> None:
        """`kept_max`: when `events` would exceed this length, it is cleared."""
        self.events: list[Any] = []
        self.kept_max = kept_max
        self.next_seq = 0
        self._listeners: list[Listener] = []
        self._by_kind: dict[type, tuple[Listener, ...]] = {}
        self._open = True

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event from now on. If it has `of_kind`, that is called once
        for each kind, and the handlers it returns are called instead."""
        self._listeners.append(listener)
        self._by_kind.clear()

    def append(self, event: Any) -> None:
        """Accept an event, whose `seq` must be `next_seq`."""
        if not self._open:
            return
        events = self.events
        events.append(event)
        if self.kept_max is not None and len(events) > self.kept_max:
            events.clear()
        self.next_seq += 1
        try:
            calls = self._by_kind[type(event)]
        except KeyError:
            calls = self._calls(type(event))
        for call in calls:
            call(event)

    def _calls(self, kind: type) -> tuple[Listener, ...]:
        """The handlers for a kind of event, in the order in which the listeners were added."""
        calls: list[Listener] = []
        for listener in self._listeners:
            of_kind = getattr(listener, "of_kind", None)
            calls += (listener,) if of_kind is None else of_kind(kind)
        self._by_kind[kind] = tuple(calls)
        return self._by_kind[kind]

    @property
    def has_all(self) -> bool:
        """Whether `events` has every event so far."""
        return len(self.events) == self.next_seq

    def close(self) -> None:
        """Ignore all further events: the world is shutting down."""
        self._open = False
