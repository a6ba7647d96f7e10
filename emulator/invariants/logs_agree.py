"""Below its high watermark a follower has the records that were committed."""

from __future__ import annotations

from emulator.invariants.base import Invariant
from emulator.trace import events as e


class LogsAgree(Invariant):
    """The last record below a follower's high watermark is the one that a leader had below its own
    at this offset (S2)."""

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.role == "leader":
            return
        committed = self.facts.committed.of(event.partition)
        if committed is None:
            return
        last = min(event.hw, committed.log.leo) - 1
        here = self.facts.logs.of(event.partition, event.broker).epoch_at(last)
        there = committed.log.epoch_at(last)
        if here is not None and there is not None and here != there:
            text = f"broker {event.broker} has a record of leader epoch {here} at offset "
            text += f"{last}, committed is one of epoch {there}"
            self.violated(text, committed.seq, event.seq, event.partition, event.broker)
