"""`isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 3, 2]`: the complete history of the ISR.

Held when the ISRs of the state znode's versions are exactly these; versions that changed only the
leader do not count.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition

SHOWN = 12


class IsrHistory(Check):
    forms = ("isr of {partition} goes {isrs}",)
    partition: TopicPartition
    isrs: tuple[tuple[int, ...], ...]

    def at_end(self) -> Finding:
        history = self.state.partitions.of(self.partition).isr_history
        if not history:
            return Finding(None, "there is no such partition")
        shown = " -> ".join(str(list(isr)) for isr in history[:SHOWN])
        more = f" -> ... ({len(history)})" if len(history) > SHOWN else ""
        return Finding(tuple(history) == self.isrs, shown + more)
