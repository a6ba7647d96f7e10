"""`3 resigns at least 2s after another was elected`: for that long two brokers acted as controller.

Held when this broker resigned this long after another one had won the next election, because it did
not know that its session had expired. Not held when it resigned earlier, or never.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e


class ResignsLate(Check):
    """A zombie controller."""

    forms = ("{broker} resigns at least {us:duration} after another was elected",)
    broker: int
    us: int
    succeeded_us: int | None = None
    longest_us: int | None = None

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self.succeeded_us = None if event.broker == self.broker else event.t

    def on_controller_resigned(self, event: e.ControllerResigned) -> None:
        if event.broker == self.broker and self.succeeded_us is not None:
            self.longest_us = max(self.longest_us or 0, event.t - self.succeeded_us)

    def at_end(self) -> Finding:
        if self.longest_us is None:
            return Finding(False, "it did not resign after another's election")
        return Finding(self.longest_us >= self.us, f"{show_us(self.longest_us)} after")
