"""`log of orders-0 at broker 2 starts at 100`, at the end.

Held when the broker's log starts there, because records were deleted or the follower threw them
away. Unknown if nothing was removed (it starts at 0), or if the trace has no log (real Kafka).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.trace.values import TopicPartition


class LogStarts(Check):
    forms = ("log of {partition} at broker {broker:broker} starts at {offset:number}",)
    partition: TopicPartition
    broker: int
    offset: int

    def at_end(self) -> Finding:
        if self.state.records.unseen:
            return Finding(None, UNSEEN)
        start = self.state.logs.of(self.partition, self.broker).start
        if start == self.offset == 0:
            return Finding(None, "nothing was removed")
        return Finding(start == self.offset, f"it starts at {start}")
