"""Intervals of a trace: which state of a partition was known where, from when to when.

The intervals of one history are ordered by time and do not overlap. An interval that has not ended
yet ends at `OPEN`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition

OPEN = 1 << 62


class Known(msgspec.Struct):
    """ZooKeeper, a controller or a metadata cache has this state of a partition during [from_us,
    to_us).

    `by` is the broker that wrote or sent it (0: unknown). `seq` is the event that began the
    interval, `seq_to` the one that ended it (-1: none).
    """

    partition: TopicPartition
    version: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    by: int
    seq: int
    from_us: int
    to_us: int = OPEN
    seq_to: int = -1


class Span(Protocol):
    """An interval with a beginning and an end."""

    from_us: int
    to_us: int


S = TypeVar("S", bound=Span)
K = TypeVar("K", bound=Known)
Interval = tuple[int, int]


def span_at(spans: list[S], at_us: int) -> S | None:
    """The interval in which `at_us` lies."""
    place = bisect_right(spans, at_us, key=lambda span: span.from_us) - 1
    return spans[place] if place >= 0 and at_us < spans[place].to_us else None


def place_before(spans: list[K], at_us: int, seq: int) -> int:
    """The index of the last interval that began before the event `seq` at `at_us`; -1 if none
    did."""
    return bisect_left(spans, (at_us, seq), key=lambda span: (span.from_us, span.seq)) - 1


def close(spans: list[K], event: AnyEvent) -> None:
    """End the open interval, if there is one."""
    if spans and spans[-1].to_us == OPEN:
        spans[-1].to_us, spans[-1].seq_to = event.t, event.seq


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals in order; overlapping and adjacent ones are merged."""
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
