"""`hw of orders-0 at broker 1 goes 5 -> 6 one fetch after broker 2 has the record`.

The leader learns that a follower has a record from that follower's *next* fetch. Held when, between
the follower's append and the leader's new high watermark, exactly one fetch with the new offset
left the follower. Not held when there was none or a second one, or when the mark never moved so;
unknown where no log was seen (real Kafka).
"""

from __future__ import annotations

from emulator.scenario.expectations.base import UNSEEN, Check, Finding
from emulator.scenario.units import show_us
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class HwOneFetchAfter(Check):
    """The leader's high watermark, one fetch round behind the follower's log."""

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
    hw = 0
    appended_us: int | None = None
    fetches = 0
    finding = Finding(False, "the high watermark never moved so")

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        here = event.partition == self.partition and event.broker == self.follower
        if here and event.leo >= self.high and self.appended_us is None:
            self.appended_us = event.t

    def on_fetch_sent(self, event: e.FetchSent) -> None:
        if event.broker != self.follower or self.appended_us is None:
            return
        self.fetches += any(
            name == self.partition and offset >= self.high for name, offset in event.offsets
        )

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.partition != self.partition or event.broker != self.leader:
            return
        before, self.hw = self.hw, event.hw
        if (before, event.hw) != (self.low, self.high):
            return
        if self.appended_us is None:
            self.finding = Finding(False, f"broker {self.follower} did not have it yet")
            return
        after = show_us(event.t - self.appended_us)
        count = f"{self.fetches} {'fetch' if self.fetches == 1 else 'fetches'}"
        self.finding = Finding(self.fetches == 1, f"{count} and {after} after")

    def at_end(self) -> Finding:
        return Finding(None, UNSEEN) if self.state.records.unseen else self.finding
