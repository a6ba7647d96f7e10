"""Within a leader's term the high watermark never decreases, and never exceeds the log end."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition


class HwBeyondLog(Violation, frozen=True):
    hw: int
    leo: int

    sentence = "the high watermark {hw} is beyond the log's end {leo}"


class HwDecreases(Violation, frozen=True):
    before: int
    after: int

    sentence = "the leader's high watermark goes from {before} to {after}"


class HwNeverDecreases(Invariant):
    """Within one leader's term the high watermark only rises, and never passes the log end."""

    def begin(self) -> None:
        self._last: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._last[event.partition, event.broker] = event.hw, event.seq

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.hw <= event.leo and event.role != "leader":
            return
        key = event.partition, event.broker
        hw, seq = self._last.get(key, (-1, -1))
        facts, name, broker = (seq, event.seq), event.partition, event.broker
        if event.hw > event.leo:
            self.violated(
                HwBeyondLog(event.hw, event.leo, facts=facts, partition=name, broker=broker)
            )
        if event.role != "leader":
            return
        if event.hw < hw:
            self.violated(HwDecreases(hw, event.hw, facts=facts, partition=name, broker=broker))
        self._last[key] = event.hw, event.seq
