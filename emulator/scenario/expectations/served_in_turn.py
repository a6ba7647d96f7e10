"""`2 gets records of every partition of orders at least every 3s while it is behind`.

A fetch response may contain only some partitions; they rotate, so that none starves. Held when the
broker was behind on several partitions at once for longer than that, and never waited longer for
records of any of them. Not held when it did. Unknown when it was never so far behind.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class ServedInTurn(Check):
    forms = (
        (
            "{broker} gets records of every partition of {topic} at least every {us:duration} "
            "while it is behind"
        ),
    )
    broker: int
    topic: str
    us: int
    longest_us = 0
    crowded_us = 0
    crowded_since_us: int | None = None

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.waiting_since: dict[TopicPartition, int] = {}

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.partition.topic != self.topic:
            return
        logs, name = self.state.logs, event.partition
        leader = logs.writer.get(name, -1)
        behind = logs.of(name, self.broker).leo < logs.of(name, leader).leo
        if event.broker == self.broker or not behind:
            self._served(name, event.t)
        if behind:
            self.waiting_since.setdefault(name, event.t)
        self._count_crowd(event.t)

    def _served(self, name: TopicPartition, t_us: int) -> None:
        since = self.waiting_since.pop(name, t_us)
        self.longest_us = max(self.longest_us, t_us - since)

    def _count_crowd(self, t_us: int) -> None:
        """Track since when several partitions wait at once."""
        if len(self.waiting_since) < 2:
            self.crowded_since_us = None
        elif self.crowded_since_us is None:
            self.crowded_since_us = t_us
        else:
            self.crowded_us = max(self.crowded_us, t_us - self.crowded_since_us)

    def at_end(self) -> Finding:
        for name in sorted(self.waiting_since):
            self._served(name, self.state.clock.now_us)
        seen = f"longest wait {show_us(self.longest_us)}, behind for {show_us(self.crowded_us)}"
        if self.longest_us > self.us:
            return Finding(False, seen)
        return Finding(True if self.crowded_us > self.us else None, seen)
