"""Intervals of a trace: who held which state of a partition, from when to when.

The intervals of one history are in the order of time and never overlap. One that has not ended
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
    """Somebody holds this state of a partition during [from_us, to_us): ZooKeeper, a controller, a
    metadata cache.

    `by` is who wrote or sent it (0: unknown); `seq` the event it came with. `seq_to` is the event
    that ended it (-1: nothing did).
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
    """What has a beginning and an end."""

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
    """The place of the last interval that began before the event `seq` at `at_us`; -1: none."""
    return bisect_left(spans, (at_us, seq), key=lambda span: (span.from_us, span.seq)) - 1


def close(spans: list[K], event: AnyEvent) -> None:
    """End the interval that is open, if one is."""
    if spans and spans[-1].to_us == OPEN:
        spans[-1].to_us, spans[-1].seq_to = event.t, event.seq


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """In order; what overlaps or touches becomes one."""
    out: list[Interval] = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
