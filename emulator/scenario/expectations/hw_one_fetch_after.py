"""`hw of orders-0 at broker 1 goes 5 -> 6 one fetch after broker 2 has the record`.

The leader learns that a follower has a record from that follower's *next* fetch. Held when, between
the follower's append and the leader's new high watermark, the follower sent exactly one fetch with
the new offset. Not held when it sent none or several, or the high watermark never advanced like
this. Unknown if the trace has no log (real Kafka).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace.values import TopicPartition


class HwOneFetchAfter(Check):
    forms = (
        (
            "hw of {partition} at broker {leader:broker} goes {low:number} -> {high:number} "
            "one fetch after broker {follower:broker} has the record"
        ),
    )
    partition: TopicPartition
    leader: int
    low: int
    high: int
    follower: int

    def take(self, **arguments: object) -> None:
        super().take(**arguments)
        self.fetched = self.state.fetches.follow(self.follower, self.partition)

    def at_end(self) -> Finding:
        if self.state.records.unseen:
            return Finding(None, UNSEEN)
        levels = self.state.water_levels
        moved_us = levels.hw_moves(self.partition, self.leader, self.low, self.high)
        if moved_us is None:
            return Finding(False, "the high watermark never moved so")
        appended_us = levels.leo_reaches(self.partition, self.follower, self.high)
        if appended_us is None or appended_us > moved_us:
            return Finding(False, f"broker {self.follower} did not have it yet")
        fetches = sum(
            offset >= self.high and appended_us <= at_us <= moved_us
            for at_us, offset in self.fetched
        )
        count = f"{fetches} {'fetch' if fetches == 1 else 'fetches'}"
        return Finding(fetches == 1, f"{count} and {show_us(moved_us - appended_us)} after")
