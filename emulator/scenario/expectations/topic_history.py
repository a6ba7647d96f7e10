"""`topic orders goes 1 -> 3 -> gone -> 2 partitions`, `topic orders is gone between 12s and 15s`.

Held when the topic's znode had exactly this sequence of partition counts; `gone` means that it was
deleted (in that time). Unknown when the topic never existed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us

GONE = 0


class TopicHistory(Check):
    forms = (
        "topic {topic} goes {sizes} partitions",
        "topic {topic} is gone between {low_us:duration} and {high_us:duration}",
    )
    topic: str
    sizes: tuple[int, ...] = ()
    low_us = 0
    high_us = 1 << 62

    def at_end(self) -> Finding:
        history = self.state.topics.sizes(self.topic)
        if not history:
            return Finding(None, "there never was such a topic")
        if self.sizes:
            shown = " -> ".join(str(size) if size else "gone" for _, size in history)
            return Finding(tuple(size for _, size in history) == self.sizes, shown)
        gone = [self.state.clock.since_up(t) for t, size in history if size == GONE]
        if not gone:
            return Finding(False, "it never was")
        held = any(self.low_us <= t <= self.high_us for t in gone)
        return Finding(held, "at " + ", ".join(map(show_us, gone)))
