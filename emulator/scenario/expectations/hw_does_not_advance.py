"""`hw of orders-0 does not advance for at least 1s while records arrive`.

Held when, for that long without interruption, the leader had records above its high watermark and
the high watermark did not advance: some ISR member did not fetch them. Unknown if the trace has no
log (real Kafka). Not held otherwise.
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class HwDoesNotAdvance(Check):
    forms = (
        "hw of {partition} does not advance for at least {us:duration} while records arrive",
        # The form in run directories from before 2026-11.
        "hw of {partition} stands still for at least {us:duration} while records arrive",
    )
    reads_levels = True
    partition: TopicPartition
    us: int

    def at_end(self) -> Finding:
        if self.state.records.unseen:
            return Finding(None, UNSEEN)
        stalls = self.state.water_levels.stalls(self.partition, self.state.clock.now_us)
        longest_us = max((end - start for start, end in stalls), default=0)
        return Finding(longest_us >= self.us, f"{show_us(longest_us)} at most")
