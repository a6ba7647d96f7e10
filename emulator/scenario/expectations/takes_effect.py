"""`the slowest isr change of orders takes at least 60ms to take effect`, or `at most`.

From the leader's decision until it has the new ISR: what the way to whoever writes it costs, be it
the leader itself or the controller. Unknown where no ISR of the topic changed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class TakesEffect(Check):
    """How long an ISR change is only decided."""

    forms = ("the slowest isr change of {topic} takes {bound} {us:duration} to take effect",)
    words = {"bound": ("at least", "at most")}
    topic: str
    bound: str
    us: int
    slowest_us: int | None = None

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.decided: dict[tuple[TopicPartition, int], int] = {}

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        if event.partition.topic == self.topic:
            self.decided[event.partition, event.broker] = event.t

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        decided = self.decided.pop((event.partition, event.broker), None)
        if decided is not None:
            self.slowest_us = max(self.slowest_us or 0, event.t - decided)

    def at_end(self) -> Finding:
        if self.slowest_us is None:
            return Finding(None, "no ISR changed")
        least = self.bound == "at least"
        held = self.slowest_us >= self.us if least else self.slowest_us <= self.us
        return Finding(held, show_us(self.slowest_us))
