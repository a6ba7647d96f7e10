"""How long producers wait: for one acknowledgement, and the longest gap between two of them.

Measures the time from passing a record to the client until its acknowledgement, and the longest gap
between two acknowledgements of one partition. Anything that delays a leader (a partition lock held
across a write to ZooKeeper, a paused follower) increases them.
"""

from __future__ import annotations

from array import array

from emulator.trace import events as e
from emulator.trace.values import TopicPartition

OK = "ok"


class Answers:
    """Times in microseconds, one sample for each acknowledged batch."""

    def __init__(self) -> None:
        # A run may last for hours: an array takes 8 bytes per batch, a list 40.
        self.took_us = array("q")
        self.gap_us_max = 0
        self._last: dict[tuple[TopicPartition, str], int] = {}

    def on_records_produced(self, event: e.RecordsProduced) -> None:
        if event.result != OK:
            return
        key = event.partition, event.acks
        self.took_us.append(event.t - event.handed_over)
        if key in self._last:
            self.gap_us_max = max(self.gap_us_max, event.t - self._last[key])
        self._last[key] = event.t
