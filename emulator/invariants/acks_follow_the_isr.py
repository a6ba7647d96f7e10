"""After a committed shrink the high watermark no longer waits for the removed member."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import TopicPartition

AT_ONCE_US = 1_000_000


class LateHighWatermark(Violation, frozen=True):
    hw: int
    late_s: float

    sentence = "the ISR shrank, and the high watermark became {hw} only {late_s:.1f} s later"


class AcksFollowTheIsr(Invariant):
    """Within one second after a leader has applied a shrink, its high watermark is what all
    remaining members have, and requests waiting for acks=all are completed (L8)."""

    def begin(self) -> None:
        self._hw: dict[tuple[TopicPartition, int], int] = {}
        self._waits: dict[tuple[TopicPartition, int], tuple[int, int, int]] = {}
        self._paused: dict[int, None] = {}
        self._paused_us: dict[int, int] = {}

    def on_process_state_changed(self, event: e.ProcessStateChanged) -> None:
        """A paused broker does not have to act in time."""
        if event.state == "paused" or event.broker in self._paused:
            self._paused_us[event.broker] = event.t
        if event.state == "paused":
            self._paused[event.broker] = None
        else:
            self._paused.pop(event.broker, None)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        key = event.partition, event.broker
        self._hw[key] = event.hw
        self._waits.pop(key, None)

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._waits.pop((event.partition, event.broker), None)

    def on_isr_updated(self, event: e.IsrUpdated) -> None:
        """Another caught-up replica may hold the high watermark back, too."""
        key = event.partition, event.broker
        replica = self.state.replicas.of(*key)
        if event.change != "shrink" or replica is None:
            return
        known = {event.broker: self.state.logs.of(*key).leo, **replica.follower_leos}
        if any(member not in known for member in event.isr):
            return
        due = min(known[member] for member in event.isr)
        behind = [leo for broker, leo in known.items() if broker not in event.isr]
        if due > self._hw.get(key, 0) and len(behind) <= 1:
            self._waits[key] = due, event.t, event.seq

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        if event.role != "leader":
            return
        key = event.partition, event.broker
        self._hw[key] = event.hw
        due, since, seq = self._waits.pop(key, (0, 0, -1))
        paused = self._paused_us.get(event.broker, -1) >= since
        if due and event.t - since > AT_ONCE_US and not paused:
            facts, late_s = (seq, event.seq), (event.t - since) / 1e6
            self.violated(
                LateHighWatermark(
                    due, late_s, facts=facts, partition=event.partition, broker=event.broker
                )
            )
