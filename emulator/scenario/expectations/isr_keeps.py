"""`isr of orders-0 keeps 2 although it is behind for at least 1s`.

Held when the replica's log was shorter than its leader's for that long without interruption, and it
never left the ISR. Not held when it left. Unknown when it was never behind for that long.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class IsrKeeps(Check):
    forms = ("isr of {partition} keeps {broker} although it is behind for at least {us:duration}",)
    reads_levels = True
    partition: TopicPartition
    broker: int
    us: int

    def at_end(self) -> Finding:
        history = self.state.partitions.of(self.partition).isr_history
        left = any(self.broker not in isr for isr in history)
        late = self.state.water_levels.late(self.partition, self.broker, self.state.clock.now_us)
        behind = max((end - start for start, end in late), default=0)
        seen = f"behind for {show_us(behind)} at most, " + ("left" if left else "stayed")
        if left:
            return Finding(False, seen)
        return Finding(True if behind >= self.us and history else None, seen)
