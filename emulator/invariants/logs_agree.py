"""Below its high watermark a follower has the committed records."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e


class LogsDiffer(Violation, frozen=True):
    """The leader epochs of the record at this offset."""

    epoch: int
    offset: int
    committed_epoch: int

    sentence = (
        "broker {broker} has a record of leader epoch {epoch} at offset {offset}; the committed"
        " one has epoch {committed_epoch}"
    )


class LogsAgree(Invariant):
    """The last record below a follower's high watermark is the one that a leader had at the same
    offset below its own (S2)."""

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.role == "leader":
            return
        committed = self.state.committed.of(event.partition)
        if committed is None:
            return
        last = min(event.hw, committed.log.leo) - 1
        own_epoch = self.state.logs.of(event.partition, event.broker).epoch_at(last)
        committed_epoch = committed.log.epoch_at(last)
        if own_epoch is not None and committed_epoch is not None and own_epoch != committed_epoch:
            self.violated(
                LogsDiffer(
                    own_epoch,
                    last,
                    committed_epoch,
                    facts=(committed.seq, event.seq),
                    partition=event.partition,
                    broker=event.broker,
                )
            )
