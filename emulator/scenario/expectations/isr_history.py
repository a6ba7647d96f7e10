"""`isr of orders-0 goes [1, 2, 3] -> [1, 3] -> [1, 3, 2]`: all its ISRs, in order, none left out.

Held when the ISRs of the state znode's versions are exactly these; versions that changed only the
leader are no new ISR.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.trace.values import TopicPartition

SHOWN = 12


class IsrHistory(Check):
    """The whole history of an ISR."""

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
