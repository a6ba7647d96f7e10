"""Every broker's process: starting, up, paused, stopping or dead, from when to when.

Derived only from `ProcessStateChanged`. A broker without such events has no process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from emulator.trace import events as e
from emulator.trace.state.spans import OPEN, Interval, merged
from emulator.trace.values import ProcessState

STARTING: Final = "starting"
UP: Final = "up"
PAUSED: Final = "paused"
DEAD: Final = "dead"


class ProcessSpan(msgspec.Struct):
    """The state of a process during [from_us, to_us)."""

    state: ProcessState
    from_us: int
    to_us: int = OPEN


Listener = Callable[[e.ProcessStateChanged], object]


class Processes:
    """All brokers' processes."""

    def __init__(self) -> None:
        self.history: dict[int, list[ProcessSpan]] = {}
        self._loss_listeners: list[Listener] = []

    def listen_to_losses(self, listener: Listener) -> None:
        """Call `listener` whenever a process loses its memory: it is dead, or a new one starts."""
        self._loss_listeners.append(listener)

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        lives = self.history.setdefault(event.broker, [])
        if lives and lives[-1].to_us == OPEN:
            lives[-1].to_us = event.t
        lives.append(ProcessSpan(event.state, event.t))
        if event.state in (DEAD, STARTING):
            for listener in self._loss_listeners:
                listener(event)

    def state(self, broker: int) -> ProcessState | None:
        """The current state; None if unknown."""
        lives = self.history.get(broker)
        return lives[-1].state if lives else None

    def spans(self, broker: int, state: ProcessState, end_us: int) -> list[Interval]:
        """When the process was in this state, up to `end_us`."""
        lives = self.history.get(broker, ())
        return merged((one.from_us, min(one.to_us, end_us)) for one in lives if one.state == state)

    def is_undisturbed(self, broker: int, from_us: int, to_us: int) -> bool:
        """Whether the process ran without a pause, stop, crash or restart."""
        return all(
            life.state == UP or (life.state == STARTING and life.from_us < from_us)
            for life in self.history.get(broker, ())
            if life.from_us < to_us and from_us < life.to_us
        )
