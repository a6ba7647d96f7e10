"""A leader does not remove a follower that lacks nothing, or only the newest records."""

from __future__ import annotations

from collections import deque

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import Lagging, TopicPartition

LATELY_US = 400_000
"""Half of the shortest replica lag time in use. A follower that fetched between one and two of
these intervals ago, and has since reached the leader's log end of one interval ago, was caught up
within the lag time by every rule since 0.10.2."""

Leadership = tuple[TopicPartition, int]
"""A partition, and a broker that believes it is the leader."""


class ExpelledWithEverything(Violation, frozen=True):
    """`broker` is the follower; its log end and the leader's."""

    isr: tuple[int, ...]
    leo: int
    leader_leo: int

    sentence = "broker {broker} is removed from the ISR {isr} but has {leo} of {leader_leo} records"


class CaughtUpMembersStay(Invariant):
    """A leader keeps a follower in the ISR that has every record, or that keeps fetching and
    lacks only records appended within the last 400 ms (L9)."""

    def begin(self) -> None:
        """Keyed by leader, because followers do not fetch from a deposed leader that does not know
        it yet."""
        self._ends: dict[Leadership, deque[tuple[int, int]]] = {}
        self._fetches: dict[tuple[Leadership, int], deque[tuple[int, int, int]]] = {}

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        leadership = event.partition, event.broker
        self._ends[leadership] = deque([(event.t, event.leo)])
        for key in [key for key in self._fetches if key[0] == leadership]:
            del self._fetches[key]

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.role == "leader":
            ends = self._ends.setdefault((event.partition, event.broker), deque())
            ends.append((event.t, event.leo))
            while len(ends) > 2 and ends[1][0] < event.t - 2 * LATELY_US:
                ends.popleft()

    def on_follower_state_updated(self, event: e.FollowerStateUpdated) -> None:
        key = (event.partition, event.broker), event.replica
        fetches = self._fetches.setdefault(key, deque())
        fetches.append((event.t, event.leo, event.seq))
        while len(fetches) > 2 and fetches[1][0] < event.t - 2 * LATELY_US:
            fetches.popleft()

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        for one in event.out_of_sync:
            fetches = self._fetches.get(((event.partition, event.broker), one.replica))
            if fetches and self._has_everything(event, one, fetches):
                self.violated(
                    ExpelledWithEverything(
                        event.from_isr,
                        one.leo,
                        event.leo,
                        facts=(fetches[-1][2], event.seq),
                        partition=event.partition,
                        broker=one.replica,
                    )
                )

    def _has_everything(
        self, event: e.IsrUpdateStarted, one: Lagging, fetches: deque[tuple[int, int, int]]
    ) -> bool:
        if one.leo >= event.leo:
            return True
        since = event.t - LATELY_US
        was_there = any(since - LATELY_US <= at <= since for at, _, _ in fetches)
        return was_there and one.leo >= self._end_at((event.partition, event.broker), since)

    def _end_at(self, leadership: Leadership, at_us: int) -> int:
        """The leader's log end at that time; unbounded if it is no longer known."""
        earlier = [leo for at, leo in self._ends.get(leadership, ()) if at <= at_us]
        return earlier[-1] if earlier else 1 << 62
