"""Log end offsets and high watermarks of every replica over time.

A replica whose offsets the trace does not contain (followers of real Kafka) has no levels. A level
lasts until the next one, so lags are weighted by time: a leader with records above its high
watermark lags even while nothing moves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from emulator.trace import events as e
from emulator.trace.state.processes import DEAD, Processes
from emulator.trace.state.spans import OPEN, Interval
from emulator.trace.values import TopicPartition


class Level(NamedTuple):
    """A replica's log end offset and high watermark from `from_us` on; -1: unknown."""

    from_us: int
    leo: int
    hw: int

    @property
    def is_known(self) -> bool:
        return self.leo >= 0 or self.hw >= 0


class Leadership(msgspec.Struct):
    """`broker` is leader in its own view during [from_us, to_us)."""

    broker: int
    from_us: int
    to_us: int = OPEN


class HwLag(msgspec.Struct, frozen=True):
    """`records` of a leader's log were above its high watermark during [from_us, to_us)."""

    broker: int
    from_us: int
    to_us: int
    records: int


class WaterLevels:
    """All replicas' levels. Without `histories` only the current ones."""

    def __init__(self, processes: Processes, *, histories: bool = True) -> None:
        self._histories = histories
        self.levels: dict[TopicPartition, dict[int, list[Level]]] = {}
        self.leaderships: dict[TopicPartition, list[Leadership]] = {}
        processes.listen_to_losses(self._lose)

    def _rise(self, name: TopicPartition, broker: int, t_us: int, leo: int, hw: int | None) -> None:
        try:
            levels = self.levels[name][broker]
        except KeyError:
            levels = self.levels.setdefault(name, {}).setdefault(broker, [])
        level = Level(t_us, leo, hw if hw is not None else levels[-1].hw if levels else 0)
        if levels and not self._histories:
            levels[0] = level
        else:
            levels.append(level)

    def on_records_appended(self, event: e.RecordsAppended) -> None:
        self._rise(event.partition, event.broker, event.t, event.leo, None)

    def on_hw_advanced(self, event: e.HwAdvanced) -> None:
        self._rise(event.partition, event.broker, event.t, event.leo, event.hw)

    def on_log_truncated(self, event: e.LogTruncated) -> None:
        self._rise(event.partition, event.broker, event.t, event.to_offset, None)
        self._forget_levels(event)

    def on_log_start_moved(self, event: e.LogStartMoved) -> None:
        self._rise(event.partition, event.broker, event.t, event.leo, event.hw)

    def on_becomes_leader(self, event: e.BecomesLeader) -> None:
        self._open(event)
        leaderships = self.leaderships.setdefault(event.partition, [])
        if not leaderships or (leaderships[-1].broker, leaderships[-1].to_us) != (
            event.broker,
            OPEN,
        ):
            self._end(event.partition, event.t)
            leaderships.append(Leadership(event.broker, event.t))

    def on_becomes_follower(self, event: e.BecomesFollower) -> None:
        self._open(event)
        self._end(event.partition, event.t, event.broker)
        self._forget_levels(event)

    def _forget_levels(self, event: e.BecomesFollower | e.LogTruncated) -> None:
        # Kafka's own log (its events have no thread) has the offset at which a follower begins, but
        # none of its later appends.
        if not event.thread:
            self._rise(event.partition, event.broker, event.t, -1, -1)

    def _open(self, event: e.BecomesLeader | e.BecomesFollower) -> None:
        if event.leo >= 0:
            self._rise(event.partition, event.broker, event.t, event.leo, event.hw)

    def on_stop_replica(self, event: e.StopReplica) -> None:
        self._end(event.partition, event.t, event.broker)

    def _lose(self, event: e.ProcessStateChanged) -> None:
        if event.state == DEAD:
            for name in self.leaderships:
                self._end(name, event.t, event.broker)

    def _end(self, name: TopicPartition, t_us: int, broker: int | None = None) -> None:
        leaderships = self.leaderships.get(name)
        if (
            leaderships
            and leaderships[-1].to_us == OPEN
            and broker in (None, leaderships[-1].broker)
        ):
            leaderships[-1].to_us = t_us

    def at(self, name: TopicPartition, broker: int, at_us: int) -> Level | None:
        """The replica's levels at `at_us`; None if unknown."""
        levels = self.levels.get(name, {}).get(broker, [])
        place = bisect_right(levels, at_us, key=lambda level: level.from_us) - 1
        return levels[place] if place >= 0 and levels[place].is_known else None

    def now(self, name: TopicPartition, broker: int) -> tuple[int | None, int | None]:
        """The replica's log end offset and high watermark now; None if unknown."""
        levels = self.levels.get(name, {}).get(broker)
        if not levels:
            return None, None
        _, leo, hw = levels[-1]
        return (leo if leo >= 0 else None), (hw if hw >= 0 else None)

    def hw_reaches(self, name: TopicPartition, broker: int, offset: int) -> int | None:
        """When the replica's high watermark first reached the offset; None: never."""
        levels = self.levels.get(name, {}).get(broker, ())
        return next((level.from_us for level in levels if level.hw >= offset), None)

    def leo_reaches(self, name: TopicPartition, broker: int, offset: int) -> int | None:
        """When the replica's log end offset first reached the offset; None: never."""
        levels = self.levels.get(name, {}).get(broker, ())
        return next((level.from_us for level in levels if level.leo >= offset), None)

    def hw_moves(self, name: TopicPartition, broker: int, low: int, high: int) -> int | None:
        """When the replica's high watermark last moved from `low` to `high` in one step."""
        levels = self.levels.get(name, {}).get(broker, ())
        moves = (now.from_us for was, now in pairwise(levels) if (was.hw, now.hw) == (low, high))
        return next(reversed([*moves]), None)

    def _of(self, name: TopicPartition, broker: int, within: Interval) -> Iterator[Level]:
        """The replica's levels within the interval. Of several at one moment, only the last
        counts."""
        first = self.at(name, broker, within[0])
        if first is not None:
            yield Level(within[0], first.leo, first.hw)
        levels = self.levels.get(name, {}).get(broker, [])
        first_place = bisect_right(levels, within[0], key=lambda level: level.from_us)
        for place in range(first_place, len(levels)):
            if levels[place].from_us >= within[1]:
                return
            if place + 1 == len(levels) or levels[place + 1].from_us > levels[place].from_us:
                yield levels[place]

    def hw_lags(self, name: TopicPartition, end_us: int) -> list[HwLag]:
        """The intervals in which the leader's log end offset was above its high watermark, up to
        `end_us`."""
        lags: list[HwLag] = []
        for term in self.leaderships.get(name, ()):
            until_us = min(term.to_us, end_us)
            levels = list(self._of(name, term.broker, (term.from_us, until_us)))
            if not levels:
                continue  # the trace does not contain this leader's log
            ends = [*(level.from_us for level in levels[1:]), until_us]
            for level, to_us in zip(levels, ends, strict=True):
                if to_us > level.from_us and level.is_known:
                    lag = level.leo - level.hw
                    lags.append(HwLag(term.broker, level.from_us, to_us, lag))
        return lags

    def behind_us(self, name: TopicPartition, end_us: int) -> int:
        """How long the leader had records above its high watermark."""
        lags = self.hw_lags(name, end_us)
        return sum(lag.to_us - lag.from_us for lag in lags if lag.records > 0)

    def stalls(self, name: TopicPartition, end_us: int) -> list[Interval]:
        """When the leader had records above its high watermark and that did not advance. A new
        leader whose high watermark has not advanced yet continues its predecessor's stall."""
        intervals: list[Interval] = []
        since_us, hw = None, -1
        for lag in self.hw_lags(name, end_us):
            level = self.at(name, lag.broker, lag.from_us)
            assert level is not None
            if since_us is not None and (level.hw > hw or lag.records <= 0):
                intervals.append((since_us, lag.from_us))
                since_us = None
            if lag.records > 0 and since_us is None:
                since_us = lag.from_us
            hw = max(hw, level.hw)
        if since_us is not None:
            intervals.append((since_us, end_us))
        return intervals

    def late(self, name: TopicPartition, broker: int, end_us: int) -> list[Interval]:
        """When the replica's log was shorter than its leader's."""
        intervals: list[Interval] = []
        since_us: int | None = None
        for term in self.leaderships.get(name, ()):
            until_us = min(term.to_us, end_us)
            levels = self._of(name, term.broker, (term.from_us, until_us))
            own = self._of(name, broker, (term.from_us, until_us))
            moments = sorted({one.from_us for one in levels} | {one.from_us for one in own})
            for at_us in moments:
                mine, leads = self.at(name, broker, at_us), self.at(name, term.broker, at_us)
                is_behind = mine is not None and leads is not None and mine.leo < leads.leo
                if is_behind and since_us is None:
                    since_us = at_us
                elif not is_behind and since_us is not None:
                    intervals.append((since_us, at_us))
                    since_us = None
        if since_us is not None:
            intervals.append((since_us, end_us))
        return intervals
