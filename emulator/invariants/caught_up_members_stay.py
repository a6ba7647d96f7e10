"""A leader does not remove a follower that lacks nothing, or only the newest records."""

from __future__ import annotations

from collections import defaultdict, deque

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e
from emulator.trace.values import Lagging, TopicPartition

LATELY_US = 400_000
"""Half of the shortest replica lag time in use. A follower that fetched between one and two of
these intervals ago, and has since reached the leader's log end of one interval ago, was caught up
within the lag time by every rule since 0.10.2."""

Leadership = tuple[TopicPartition, int]
"""A partition, and a broker that believes it is the leader."""
Fetches = deque[tuple[int, int, int]]
"""A follower's fetches lately: time, log end and `seq` of each."""


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
        self._ends: defaultdict[Leadership, deque[tuple[int, int]]] = defaultdict(deque)
        self._fetches: defaultdict[Leadership, defaultdict[int, Fetches]]
        self._fetches = defaultdict(lambda: defaultdict(deque))

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        leadership = event.partition, event.broker
        self._ends[leadership] = deque([(event.t, event.leo)])
        self._fetches.pop(leadership, None)

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        if event.role == "leader":
            ends = self._ends[event.partition, event.broker]
            ends.append((event.t, event.leo))
            while len(ends) > 2 and ends[1][0] < event.t - 2 * LATELY_US:
                ends.popleft()

    def on_follower_state_updated(self, event: e.FollowerStateUpdated) -> None:
        fetches = self._fetches[event.partition, event.broker][event.replica]
        fetches.append((event.t, event.leo, event.seq))
        while len(fetches) > 2 and fetches[1][0] < event.t - 2 * LATELY_US:
            fetches.popleft()

    def on_isr_update_started(self, event: e.IsrUpdateStarted) -> None:
        of_replica = self._fetches[event.partition, event.broker]
        for one in event.out_of_sync:
            fetches = of_replica.get(one.replica)
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

    def _has_everything(self, event: e.IsrUpdateStarted, one: Lagging, fetches: Fetches) -> bool:
        if one.leo >= event.leo:
            return True
        since = event.t - LATELY_US
        was_there = any(since - LATELY_US <= at <= since for at, _, _ in fetches)
        return was_there and one.leo >= self._end_at((event.partition, event.broker), since)

    def _end_at(self, leadership: Leadership, at_us: int) -> int:
        """The leader's log end at that time; unbounded if it is no longer known."""
        earlier = [leo for at, leo in self._ends.get(leadership, ()) if at <= at_us]
        return earlier[-1] if earlier else 1 << 62
