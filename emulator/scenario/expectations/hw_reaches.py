"""`hw of orders-0 reaches 6 at broker 2 at least 300ms after broker 1`, or `at most`.

Compares when two replicas' high watermarks first came to an offset: a follower learns the leader's
with a later fetch. Not held when one of the two never came to it, or the second came first; unknown
where no log was seen (real Kafka).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class HwReaches(Check):
    """How much later one replica knows a high watermark than another."""

    forms = (
        (
            "hw of {partition} reaches {offset:number} at broker {second:broker} "
            "{bound} {us:duration} after broker {first:broker}"
        ),
    )
    words = {"bound": ("at least", "at most")}
    partition: TopicPartition
    offset: int
    first: int
    second: int
    bound: str
    us: int

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.when: dict[int, int] = {}

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.partition == self.partition and event.hw >= self.offset:
            self.when.setdefault(event.broker, event.t)

    def at_end(self) -> Finding:
        if self.observed.records.unseen:
            return Finding(None, UNSEEN)
        missing = [b for b in (self.first, self.second) if b not in self.when]
        if missing:
            return Finding(False, f"never at broker {missing[0]}")
        later = self.when[self.second] - self.when[self.first]
        right = later >= self.us if self.bound == "at least" else later <= self.us
        return Finding(right and later >= 0, f"{show_us(later)} after")
