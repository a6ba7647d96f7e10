"""`isr of orders-0 first changes between 14s and 20s`: not before, and not later.

Held when the first version of the state znode with other members than its predecessor was written
in that time. Not held otherwise.
"""

from __future__ import annotations

import itertools

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class IsrFirstChanges(Check):
    forms = ("isr of {partition} first changes between {low_us:duration} and {high_us:duration}",)
    partition: TopicPartition
    low_us: int
    high_us: int

    def at_end(self) -> Finding:
        states = self.state.partitions.of(self.partition).states
        changes = (
            self.state.clock.since_up(after.from_us)
            for before, after in itertools.pairwise(states)
            if set(after.isr) != set(before.isr)
        )
        first_us = next(changes, None)
        if first_us is None:
            return Finding(False, "it never did")
        return Finding(self.low_us <= first_us <= self.high_us, f"at {show_us(first_us)}")
