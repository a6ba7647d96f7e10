"""`isr of orders-0 becomes [1, 3]`, optionally `between 7s and 9s` of the scenario's time.

Held when some version of the state znode has exactly this ISR, in this order (in that time). The
first version does not count, because it is no change. Not held otherwise.
"""

from __future__ import annotations

import itertools

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class IsrBecomes(Check):
    forms = (
        "isr of {partition} becomes {isr}",
        "isr of {partition} becomes {isr} between {low_us:duration} and {high_us:duration}",
    )
    partition: TopicPartition
    isr: tuple[int, ...]
    low_us = 0
    high_us = 1 << 62

    def at_end(self) -> Finding:
        states = self.state.partitions.of(self.partition).states
        when = [
            self.state.clock.since_up(after.from_us)
            for before, after in itertools.pairwise(states)
            if after.isr == self.isr != before.isr
        ]
        if not when:
            return Finding(False, "it never did")
        held = any(self.low_us <= t <= self.high_us for t in when)
        return Finding(held, "at " + ", ".join(map(show_us, when[:5])))
