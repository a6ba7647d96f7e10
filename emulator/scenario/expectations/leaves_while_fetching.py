"""`2 leaves isr of orders-0 while fetching at least every 1s`.

Held when a shrink removes this broker although, in the whole time in which it was not caught up, no
two of its fetches from that leader were further apart. Not held when it leaves after a longer
pause, or never. Unknown if the trace does not show how long it lagged (real Kafka).
"""

from __future__ import annotations

import itertools
from collections import deque

from emulator.scenario.expectations.base import Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

FETCHES_MAX = 10_000


class LeavesWhileFetching(Check):
    forms = ("{broker} leaves isr of {partition} while fetching at least every {us:duration}",)
    broker: int
    partition: TopicPartition
    us: int
    finding = Finding(False, "it never left")

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.fetches: deque[tuple[int, int]] = deque(maxlen=FETCHES_MAX)

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        if event.broker == self.broker:
            self.fetches.append((event.t, event.leader))

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        if event.partition != self.partition or self.finding.held:
            return
        for lagging in event.out_of_sync:
            if lagging.replica == self.broker and lagging.not_caught_up_ms < 0:
                self.finding = Finding(None, "for how long it had lagged was not seen")
            elif lagging.replica == self.broker:
                self._judge(event, event.t - lagging.not_caught_up_ms * 1000)

    def _judge(self, event: e.IsrUpdateStarted, since_us: int) -> None:
        times = [t for t, leader in self.fetches if leader == event.broker and t >= since_us]
        moments = [since_us, *times, event.t]
        gap = max(b - a for a, b in itertools.pairwise(moments))
        self.finding = Finding(
            gap <= self.us, f"{len(times)} fetches, {show_us(gap)} apart at most"
        )

    def at_end(self) -> Finding:
        return self.finding
