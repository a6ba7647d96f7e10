"""`hw of orders-0 stands still for at least 1s while records arrive`.

Held when, for that long at a stretch, the leader had records above its high watermark and the mark
did not move: somebody in the ISR did not fetch them. Unknown where no log was seen (real Kafka).
Not held otherwise.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class HwStandsStill(Check):
    """Consumers, and producers with acks=all, wait for a follower."""

    forms = ("hw of {partition} stands still for at least {us:duration} while records arrive",)
    partition: TopicPartition
    us: int
    since_us: int | None = None
    longest_us = 0

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.partition == self.partition and event.role == "leader" and self.since_us is None:
            self.since_us = event.t

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.partition != self.partition or event.role != "leader":
            return
        self._count(event.t)
        self.since_us = event.t if event.hw < event.leo else None

    def at_end(self) -> Finding:
        if self.observed.records.unseen:
            return Finding(None, UNSEEN)
        self._count(self.observed.clock.now_us)
        return Finding(self.longest_us >= self.us, f"{show_us(self.longest_us)} at most")

    def _count(self, t_us: int) -> None:
        if self.since_us is not None:
            self.longest_us = max(self.longest_us, t_us - self.since_us)
