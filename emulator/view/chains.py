"""Describes a few events of a trace, one line each: a fact, and the chain of causes to another one.

Owns the format of such a line; the texts come from `wording`. The caller says what is wrong with
the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from emulator.trace.events import AnyEvent
from emulator.trace.state.timeline import Timeline
from emulator.view.event_text import Scene, scene
from emulator.view.wording import describe_event


class Broken(Protocol):
    """A violated predicate, with the contradicting facts."""

    @property
    def invariant(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def hazard(self) -> str: ...

    @property
    def partition(self) -> str | None: ...

    @property
    def facts(self) -> tuple[int, int]: ...

    @property
    def chain(self) -> tuple[int, ...]: ...


def headline(one: Broken) -> tuple[str, str]:
    """The violation, and the known hazard of Kafka behind it (empty: none)."""
    about = f"   {one.partition}" if one.partition else ""
    hazard = f"   hazard of Kafka's: {one.hazard}" if one.hazard else ""
    return f"{one.invariant}{about}: {one.text}", hazard


class EventDescriber:
    """Describes single events of one trace."""

    def __init__(self, events: Sequence[AnyEvent]) -> None:
        self._events = events
        self._scene: Scene = scene(Timeline(events))

    def lines(self, before: int, chain: Iterable[int]) -> list[str]:
        """The earlier fact (-1: none), then the chain from its first cause to the later fact."""
        lines = [f"before  {self._line(before)}"] if before >= 0 else []
        for place, seq in enumerate(chain):
            lines.append(f"{'then' if place else 'cause':6}  {self._line(seq)}")
        return lines

    def story(self, one: Broken) -> list[str]:
        """The facts of a violation, and the causes of the later one."""
        return self.lines(one.facts[0], one.chain)

    def _line(self, seq: int) -> str:
        event = self._events[seq]
        text = describe_event(event, self._scene)
        who = f"{event.broker} {event.thread}" if event.broker else event.thread
        numbers = f" ({text.numbers})" if text.numbers else ""
        return f"#{seq} {event.t / 1e6:.6f} s  {who}: {text.headline}{numbers}"
