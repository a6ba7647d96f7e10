"""`metadata of orders-0 is stale for at least 40s`, or `at most 10s`, optionally `at broker 1`.

Held when the longest time in which a broker's cache had an older version than the state znode is in
the range. Without a broker it is the longest of all brokers. `at most` is unknown when no ISR
changed.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class MetadataStale(Check):
    forms = (
        "metadata of {partition} is stale for {bound} {us:duration}",
        "metadata of {partition} at broker {broker} is stale for {bound} {us:duration}",
    )
    words = {"bound": ("at least", "at most")}
    partition: TopicPartition
    bound: str
    us: int
    broker: int | None = None

    def at_end(self) -> Finding:
        staleness = self.state.staleness
        brokers = staleness.brokers(self.partition) if self.broker is None else [self.broker]
        longest = max((staleness.longest_us(self.partition, b) for b in brokers), default=0)
        if self.bound == "at least":
            return Finding(longest >= self.us, show_us(longest))
        changed = len(self.state.partitions.of(self.partition).states) > 1
        held = longest <= self.us
        return Finding(held if changed or not held else None, show_us(longest))
