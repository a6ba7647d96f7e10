"""A few events of a trace in words, one line each: a fact, and the chain of causes to another.

Owns the form of such a line; the words come from `wording`. Knows nothing of what is wrong with the
facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emulator.trace.events import AnyEvent
from emulator.view.derive import derive
from emulator.view.telling import Scene, scene
from emulator.view.wording import tell


class Teller:
    """Puts single events of one trace into words."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self._events = events
        self._scene: Scene = scene(derive(events))

    def lines(self, before: int, chain: Iterable[int]) -> list[str]:
        """The earlier fact (-1: none), then the chain from its first cause to the later fact."""
        told = [f"before  {self._line(before)}"] if before >= 0 else []
        for place, seq in enumerate(chain):
            told.append(f"{'then' if place else 'cause':6}  {self._line(seq)}")
        return told

    def _line(self, seq: int) -> str:
        event = self._events[seq]
        told = tell(event, self._scene)
        who = f"{event.broker} {event.thread}" if event.broker else event.thread
        numbers = f" ({told.numbers})" if told.numbers else ""
        return f"#{seq} {event.t / 1e6:.6f} s  {who}: {told.headline}{numbers}"
