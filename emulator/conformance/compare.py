"""The product's own judge: whether a set of emulated runs matches a real recording.

The verdict is defined by the judge outside this project. At least one run must agree in state
history, controllers and control requests together. Each key of the other criteria must be equal in
one of the agreeing runs. Each recorded delay must lie in the range of the runs, slightly widened. A
`Reference` is made once from the real recording and examines runs one by one, possibly in several
processes: an `Examined` is small and can be pickled. This module must not know how a run was made.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from emulator.conformance.criteria import (
    AGREED,
    BY_KEY,
    DELAYS,
    EVER,
    POINTS,
    PRODUCED,
    Entry,
    Part,
    all_keys,
    entries_of,
    lens_of,
)
from emulator.conformance.delays import STALL, Delays, delays_of
from emulator.conformance.producers import has_equal_counts, periods_ms, result_counts_of, stalls_of
from emulator.conformance.recording import Recording
from emulator.trace.percentiles import nearest_rank

TOLERANCE_MS = 150
ENOUGH_AGREEING = 20
"""With at least this many agreeing runs, only they define the range of a delay."""

NONE_SO_SHORT, NONE_SO_LONG = ": none so short", ": none so long"
"""Ends of the names of delay gaps."""

_SHOWN = 3
_ALL_POINTS = tuple(sorted((*AGREED, *BY_KEY)))


class Difference(msgspec.Struct, frozen=True):
    """The first difference in one key of a point: the common prefix, then both sides."""

    point: int
    key: str
    entry: int
    before: tuple[Entry, ...]
    real: tuple[Entry, ...]
    run: tuple[Entry, ...]


class Timing(msgspec.Struct, frozen=True):
    """A recorded delay and the range of the runs (None: no run has it)."""

    what: str
    recorded_ms: int
    min_ms: int | None
    p50_ms: int | None
    max_ms: int | None
    inside: bool


class Examined(msgspec.Struct, frozen=True):
    """The comparison of one run with the real recording: its differences and delays by point."""

    run: str
    differences: dict[int, tuple[Difference, ...]]
    delays: Delays

    @property
    def agrees(self) -> bool:
        return self.distance == 0

    @property
    def lacking(self) -> frozenset[Part]:
        """The parts that differ."""
        differences = chain.from_iterable(self.differences.values())
        return frozenset((difference.point, difference.key) for difference in differences)

    @property
    def distance(self) -> int:
        """The number of differing keys in the three points on which a cluster must agree."""
        return sum(len(self.differences[point]) for point in AGREED)


class Verdict(msgspec.Struct, frozen=True):
    recording: str
    matched: bool
    seeds: int
    agreeing: tuple[str, ...]
    """The runs that agree in state history, controllers and control requests."""
    points: dict[int, bool]
    agreeing_by_point: dict[int, int]
    """For each criterion, the number of runs that are equal in all its keys."""
    nearest_run: str
    nearest_differences: dict[int, Difference | None]
    """For each criterion, the first difference of the nearest run (None: equal)."""
    differences: tuple[Difference, ...]
    """The differences that prevent a match, apart from delays."""
    timings: tuple[Timing, ...]

    @property
    def seeds_agreeing(self) -> int:
        return len(self.agreeing)

    @property
    def first_difference(self) -> Difference | None:
        return self.differences[0] if self.differences else None

    def as_json(self) -> dict[str, object]:
        first = self.first_difference
        return {
            "recording": self.recording,
            "matched": self.matched,
            "seeds": self.seeds,
            "seeds_agreeing": self.seeds_agreeing,
            "agreeing": self.agreeing,
            "points": {str(point): ok for point, ok in self.points.items()},
            "first_difference": first and msgspec.structs.asdict(first),
            "timings": [msgspec.structs.asdict(timing) for timing in self.timings],
        }


class Reference:
    """The real recording, to which runs are compared."""

    def __init__(self, real: Recording, requests_from_ms: int = EVER) -> None:
        self.real = real
        self.lens = lens_of(real, requests_from_ms)
        stalls = stalls_of(real)
        self._entries = {point: entries_of(point, real, self.lens) for point in POINTS}
        self._result_counts = result_counts_of(real, stalls)
        self._periods_ms = periods_ms(real)
        self.delays = delays_of(real, stalls)

    def examine(self, run: Recording) -> Examined:
        differences: dict[int, tuple[Difference, ...]] = {}
        for point in POINTS:
            real_lanes, run_lanes = self._entries[point], entries_of(point, run, self.lens)
            differences[point] = tuple(
                _difference(point, key, real_lanes.get(key, []), run_lanes.get(key, []))
                for key in all_keys(real_lanes, run_lanes)
                if real_lanes.get(key, []) != run_lanes.get(key, [])
            )
        stalls = stalls_of(run)
        result_counts = result_counts_of(run, stalls)
        produced = []
        for key in all_keys(self._result_counts, result_counts):
            ours, theirs = self._result_counts.get(key), result_counts.get(key)
            if has_equal_counts(ours, theirs):
                continue
            sides: tuple[list[Entry], list[Entry]] = list(ours or ()), list(theirs or ())
            if ours and theirs:  # with counts; otherwise only the kinds of results are shown
                sides = list(ours.items()), list(theirs.items())
            produced.append(_difference(PRODUCED, key, *sides))
        differences[PRODUCED] = tuple(produced)
        return Examined(run.name, differences, delays_of(run, stalls))

    def slack_ms(self, what: str, tolerance_ms: float = TOLERANCE_MS) -> float:
        """The tolerance around a recorded delay. A producer notices that it may continue only when
        its next record is due."""
        return tolerance_ms + self._periods_ms.get(what.partition(STALL)[0], 0)

    def delay_gaps(self, run: Examined) -> Iterator[str]:
        """Why a single run does not cover the recorded delays: for one that is too long, a run with
        a shorter one is needed, and vice versa; for a missing one, both."""
        for what in self.delays:
            run_ms = run.delays.get(what)
            if run_ms is None or self.is_too_long(what, run_ms):
                yield f"{what}{NONE_SO_SHORT}"
            if run_ms is None or self.is_too_short(what, run_ms):
                yield f"{what}{NONE_SO_LONG}"

    def is_too_long(self, what: str, run_ms: int) -> bool:
        return run_ms > self.delays[what] + self.slack_ms(what)

    def is_too_short(self, what: str, run_ms: int) -> bool:
        return run_ms < self.delays[what] - self.slack_ms(what)

    def lacking(self, run: Examined) -> frozenset[Part]:
        """The parts that a match still needs beside an agreeing run: agreeing runs are a match if
        no part is lacking in all of them."""
        return run.lacking | {(DELAYS, gap) for gap in self.delay_gaps(run)}


def judge(
    real: Recording,
    runs: Sequence[Recording],
    tolerance_ms: float = TOLERANCE_MS,
    requests_from_ms: int = EVER,
) -> Verdict:
    """`requests_from_ms` 0 ignores the requests before `up`, for comparing two real runs."""
    reference = Reference(real, requests_from_ms)
    return conclude(reference, [reference.examine(run) for run in runs], tolerance_ms)


def conclude(
    reference: Reference, examined: Sequence[Examined], tolerance_ms: float = TOLERANCE_MS
) -> Verdict:
    assert examined, "a verdict needs at least one run"
    agreeing = [run for run in examined if run.agrees]
    if agreeing:
        # They are all at distance 0. What the first one lacks another may have.
        nearest = min(agreeing, key=lambda run: len(run.lacking))
    else:
        nearest = min(examined, key=lambda run: run.distance)

    # Keys in which none of the runs is equal. Agreeing runs have no difference in points 1, 3 and
    # 4. If none agrees, only the nearest run shows what prevents a match.
    first, *others = agreeing or [nearest]
    missed: dict[int, list[Difference]] = {}
    for point in (*AGREED, *BY_KEY):
        elsewhere = [{difference.key for difference in run.differences[point]} for run in others]
        missed[point] = [
            difference
            for difference in first.differences[point]
            if all(difference.key in keys for keys in elsewhere)
        ]

    by_time = agreeing if len(agreeing) >= ENOUGH_AGREEING else examined
    timings = []
    for what, recorded_ms in reference.delays.items():
        ordered = sorted(run.delays[what] for run in by_time if what in run.delays)
        if not ordered:
            timings.append(Timing(what, recorded_ms, None, None, None, inside=False))
            continue
        low, high, slack = ordered[0], ordered[-1], reference.slack_ms(what, tolerance_ms)
        inside = low - slack <= recorded_ms <= high + slack
        timings.append(Timing(what, recorded_ms, low, nearest_rank(ordered, 50), high, inside))

    equal = not any(missed.values()) and all(timing.inside for timing in timings)
    return Verdict(
        recording=reference.real.name,
        matched=bool(agreeing) and equal,
        seeds=len(examined),
        agreeing=tuple(run.run for run in agreeing),
        points={point: not missed[point] for point in _ALL_POINTS},
        agreeing_by_point={
            point: sum(not run.differences[point] for run in examined) for point in _ALL_POINTS
        },
        nearest_run=nearest.run,
        nearest_differences={
            point: next(iter(nearest.differences[point]), None) for point in _ALL_POINTS
        },
        differences=tuple(chain.from_iterable(missed.values())),
        timings=tuple(timings),
    )


def _difference(point: int, key: str, real: Sequence[Entry], run: Sequence[Entry]) -> Difference:
    at = first_unequal(real, run)
    before, until = real[max(0, at - _SHOWN) : at], at + _SHOWN
    return Difference(point, key, at, tuple(before), tuple(real[at:until]), tuple(run[at:until]))


def first_unequal(real: Sequence[Entry], run: Sequence[Entry]) -> int:
    """The index of the first difference of two lanes; the length of the shorter one if it is a
    prefix."""
    pairs = enumerate(zip(real, run, strict=False))
    return next((i for i, (ours, theirs) in pairs if ours != theirs), min(len(real), len(run)))
