"""`hw of orders-0 reaches 6 at broker 2 at least 300ms after broker 1`, or `at most`.

Compares when two replicas' high watermarks first reached an offset: a follower learns the leader's
with a later fetch. Not held when one of them never reached it, or the second one did so first.
Unknown if the trace has no log (real Kafka).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class HwReaches(Check):
    forms = (
        (
            "hw of {partition} reaches {offset:number} at broker {second:broker} "
            "{bound} {us:duration} after broker {first:broker}"
        ),
    )
    reads_levels = True
    words = {"bound": ("at least", "at most")}
    partition: TopicPartition
    offset: int
    first: int
    second: int
    bound: str
    us: int

    def at_end(self) -> Finding:
        if self.state.records.unseen:
            return Finding(None, UNSEEN)
        reaches = self.state.water_levels.hw_reaches
        first_us = reaches(self.partition, self.first, self.offset)
        second_us = reaches(self.partition, self.second, self.offset)
        if first_us is None or second_us is None:
            who = self.first if first_us is None else self.second
            return Finding(False, f"never at broker {who}")
        later = second_us - first_us
        right = later >= self.us if self.bound == "at least" else later <= self.us
        return Finding(right and later >= 0, f"{show_us(later)} after")
