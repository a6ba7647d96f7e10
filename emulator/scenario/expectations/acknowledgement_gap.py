"""`no record of orders is acknowledged for at least 5s`, or `at most 1s`.

The longest time between two consecutive acknowledgements of one partition: how long producers
noticed a fail-over. `at most` is unknown if no partition of the topic ever changed its leader,
because then nothing threatened them.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class AcknowledgementGap(Check):
    """How long producers of a topic had to wait."""

    forms = ("no record of {topic} is acknowledged for {bound} {us:duration}",)
    words = {"bound": ("at least", "at most")}
    topic: str
    bound: str
    us: int
    longest_us: int | None = None

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.last: dict[TopicPartition, int] = {}

    def on_records_produced(self, event: e.RecordsProduced) -> None:
        if event.partition.topic != self.topic or event.result != "ok":
            return
        before = self.last.get(event.partition)
        if before is not None:
            self.longest_us = max(self.longest_us or 0, event.t - before)
        self.last[event.partition] = event.t

    def at_end(self) -> Finding:
        if self.longest_us is None:
            return Finding(None, "fewer than two were acknowledged")
        seen = show_us(self.longest_us)
        if self.bound == "at least":
            return Finding(self.longest_us >= self.us, seen)
        held = self.longest_us <= self.us
        partitions = self.state.partitions.of_topic(self.topic)
        if held and all(len(p.leader_history) < 2 for p in partitions):
            return Finding(None, f"{seen}, but no leader ever changed")
        return Finding(held, seen)
