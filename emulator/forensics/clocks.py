"""Estimates each broker's clock offset from causality: nothing arrives before it was sent.

A pair means that clock b is ahead of clock a by at most (seen on b - sent on a). These are
difference constraints, whose tightest bounds are shortest paths. The estimate is 0 if the bounds
allow it, otherwise the middle between the two bounds, or the only bound. Contradictions (a clock
that was set, or drifts) are reported. Plain functions, independent of logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from emulator.forensics.causes import Pair
from emulator.trace.percentiles import nearest_rank

ZOOKEEPER = "zookeeper"
SLACKS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class ClockOffset(msgspec.Struct, frozen=True):
    """How far a clock is ahead of the reference, in milliseconds: lower and upper bound (None:
    unbounded), and the estimate."""

    clock: str
    ms: int
    at_least: int | None
    at_most: int | None
    pairs: int

    @property
    def is_bounded(self) -> bool:
        return self.at_least is not None and self.at_most is not None


class Clocks(msgspec.Struct, frozen=True):
    """All clocks except the reference. `slack_ms`: by how much causes had to be relaxed to be
    consistent (1: log4j's rounding; more: clocks drift). `contradiction`: no amount is enough."""

    reference: str
    ahead: tuple[ClockOffset, ...]
    slack_ms: int = 1
    contradiction: str = ""

    def correction_ms(self, clock: str) -> int:
        """The milliseconds to subtract from the times of a clock."""
        return next((one.ms for one in self.ahead if one.clock == clock), 0)


Bounds = Mapping[tuple[str, str], int]
"""(a, b): clock b is ahead of a by at most this much."""


def estimate(pairs: Iterable[Pair], clocks: Iterable[str]) -> Clocks:
    """Estimate the offsets. ZooKeeper's clock is the reference if it is one of `clocks`; otherwise
    the median one. Clocks that occur only in pairs connect the others."""
    every_pair = list(pairs)
    names = sorted(set(clocks))
    every = sorted({*names, *(name for pair in every_pair for name in (pair.cause, pair.effect))})
    at_most: dict[tuple[str, str], int] = {}
    for pair in every_pair:
        if pair.cause != pair.effect:
            key, ms = (pair.cause, pair.effect), pair.seen_ms - pair.sent_ms
            at_most[key] = min(ms, at_most.get(key, ms))
    for slack in SLACKS_MS:
        paths = _shortest({key: ms + slack for key, ms in at_most.items()}, every)
        # A cycle of causes with a negative duration: no constant offsets are possible.
        wrong = [name for name in every if paths[name, name] < 0]
        if not wrong:
            break
    else:
        return Clocks(
            ZOOKEEPER if ZOOKEEPER in names else next(iter(names), ""),
            (),
            contradiction=f"no constant offset fits {', '.join(wrong)}: a clock was adjusted",
        )
    counts = {name: sum(name in (p.cause, p.effect) for p in every_pair) for name in names}
    reference = _reference(names, counts, paths)
    ahead = []
    for name in names:
        if name != reference:
            most, back = paths[reference, name], paths[name, reference]
            ahead.append(
                ClockOffset(
                    name,
                    _ms(name, reference, paths) or 0,
                    None if back >= NEVER else -back,
                    None if most >= NEVER else most,
                    counts[name],
                )
            )
    return Clocks(reference, tuple(ahead), slack)


NEVER = 1 << 60


def _shortest(bounds: Bounds, names: list[str]) -> dict[tuple[str, str], int]:
    """All shortest paths (Floyd-Warshall), because there are only as many clocks as brokers."""
    paths = {(a, b): 0 if a == b else bounds.get((a, b), NEVER) for a in names for b in names}
    for middle in names:
        for a in names:
            if paths[a, middle] >= NEVER:
                continue
            for b in names:
                through = paths[a, middle] + paths[middle, b]
                if paths[middle, b] < NEVER and through < paths[a, b]:
                    paths[a, b] = through
    return paths


def _reference(
    names: list[str], counts: Mapping[str, int], paths: Mapping[tuple[str, str], int]
) -> str:
    if counts.get(ZOOKEEPER):
        return ZOOKEEPER
    if not names:
        return ""
    best = max(names, key=lambda name: (counts[name], name))
    known = [one for one in names if one == best or _ms(one, best, paths) is not None]
    ordered = sorted(known, key=lambda name: (_ms(name, best, paths) or 0, name))
    return nearest_rank(ordered, 50)


def _ms(clock: str, reference: str, paths: Mapping[tuple[str, str], int]) -> int | None:
    at_most, back = paths[reference, clock], paths[clock, reference]
    if at_most >= NEVER and back >= NEVER:
        return None
    if at_most >= NEVER:
        return -back
    if back >= NEVER:
        return at_most
    return 0 if -back <= 0 <= at_most else (at_most - back) // 2
