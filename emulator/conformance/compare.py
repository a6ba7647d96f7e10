"""The product's own judge: is a real recording matched by a set of emulated runs?

Owns the verdict as `shared/tools/compare-recordings` defines it: at least one run agrees in
points 1, 3 and 4 together; each key of points 2, 5, 6 and 7 is equal in one of those that agree;
each recorded delay lies in the range that the runs span, a little widened. A `Reference` is made
once of the real recording and examines runs one by one, perhaps in several processes: an
`Examined` is small and can be pickled. This module must not know how a run was made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from emulator.conformance.criteria import (
    AGREED,
    BY_KEY,
    EVER,
    POINTS,
    PRODUCED,
    Entry,
    Lens,
    Part,
    all_keys,
    entries_of,
    lens_of,
)
from emulator.conformance.delays import Delays, delays_of
from emulator.conformance.producers import Tally, periods_ms, same_tally, stalls_of, tallies_of
from emulator.conformance.recording import Recording
from emulator.runs.summary import nearest_rank

TOLERANCE_MS = 150
ENOUGH_AGREEING = 20
"""From so many agreeing runs on, they alone say how long a delay may be."""

_SHOWN = 3
_ALL_POINTS = tuple(sorted((*AGREED, *BY_KEY)))


@dataclass(frozen=True)
class Difference:
    """The first place where one key of a point differs: what was alike before, then both sides."""

    point: int
    key: str
    entry: int
    before: tuple[Entry, ...]
    real: tuple[Entry, ...]
    run: tuple[Entry, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "point": self.point,
            "key": self.key,
            "entry": self.entry,
            "before": list(self.before),
            "real": list(self.real),
            "run": list(self.run),
        }


@dataclass(frozen=True)
class Timing:
    """One recorded delay beside the range that the runs span (None: no run has it)."""

    what: str
    recorded_ms: int
    min_ms: int | None
    p50_ms: int | None
    max_ms: int | None
    inside: bool

    def as_json(self) -> dict[str, object]:
        return {
            "what": self.what,
            "recorded_ms": self.recorded_ms,
            "min_ms": self.min_ms,
            "p50_ms": self.p50_ms,
            "max_ms": self.max_ms,
            "inside": self.inside,
        }


@dataclass(frozen=True)
class Examined:
    """What one run has to do with the real recording: per point its differences, and its delays."""

    run: str
    differences: dict[int, tuple[Difference, ...]]
    delays: Delays

    @property
    def agrees(self) -> bool:
        return self.distance == 0

    @property
    def lacking(self) -> frozenset[Part]:
        """What it is not equal in."""
        differences = chain.from_iterable(self.differences.values())
        return frozenset((difference.point, difference.key) for difference in differences)

    @property
    def distance(self) -> int:
        """How many keys differ in what the cluster agreed on."""
        return sum(len(self.differences[point]) for point in AGREED)


@dataclass(frozen=True)
class Verdict:
    recording: str
    matched: bool
    seeds: int
    agreeing: tuple[str, ...]
    """The runs that agree in points 1, 3 and 4."""
    points: dict[int, bool]
    agreeing_by_point: dict[int, int]
    """For each point, how many runs are equal in it whole."""
    nearest_run: str
    nearest_differences: dict[int, Difference | None]
    """For each point, where the nearest run first differs (None: nowhere)."""
    differences: tuple[Difference, ...]
    """What keeps the recording from being matched, delays aside."""
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
            "agreeing": list(self.agreeing),
            "points": {str(point): ok for point, ok in self.points.items()},
            "first_difference": first.as_json() if first else None,
            "timings": [timing.as_json() for timing in self.timings],
        }


@dataclass(frozen=True)
class _Sides:
    """A recording as the judge reads it, through the lens of the real one."""

    entries: dict[int, dict[str, list[Entry]]]
    tallies: dict[str, Tally]
    delays: Delays


def _read(recording: Recording, lens: Lens) -> _Sides:
    entries = {point: entries_of(point, recording, lens) for point in POINTS}
    stalls = stalls_of(recording)
    return _Sides(entries, tallies_of(recording, stalls), delays_of(recording, stalls))


class Reference:
    """The real recording, read once, against which runs are examined."""

    def __init__(self, real: Recording, requests_from_ms: int = EVER) -> None:
        self.real = real
        self.lens = lens_of(real, requests_from_ms)

    def examine(self, run: Recording) -> Examined:
        found = _read(run, self.lens)
        differences = {
            point: tuple(_differences(point, self._read.entries[point], found.entries[point]))
            for point in POINTS
        }
        differences[PRODUCED] = tuple(_tally_differences(self._read.tallies, found.tallies))
        return Examined(run.name, differences, found.delays)

    @property
    def delays(self) -> Delays:
        return self._read.delays

    @cached_property
    def _periods_ms(self) -> dict[str, float]:
        return periods_ms(self.real)

    def slack_ms(self, what: str, tolerance_ms: float = TOLERANCE_MS) -> float:
        """How far from the recorded delay still counts as equal. A producer notices that it may go
        on only when its next record is due."""
        return tolerance_ms + self._periods_ms.get(what.partition(": stall")[0], 0)

    def delays_apart(self, run: Examined) -> Iterator[str]:
        """What keeps a run alone from spanning the recorded delays: one that takes too long wants
        another that does not, and the other way round; one that it has not wants both."""
        for what, recorded_ms in self.delays.items():
            taken, slack = run.delays.get(what), self.slack_ms(what)
            if taken is None or taken > recorded_ms + slack:
                yield f"{what}: none so short"
            if taken is None or taken < recorded_ms - slack:
                yield f"{what}: none so long"

    @cached_property
    def _read(self) -> _Sides:
        return _read(self.real, self.lens)


def judge(
    real: Recording,
    runs: Sequence[Recording],
    tolerance_ms: float = TOLERANCE_MS,
    requests_from_ms: int = EVER,
) -> Verdict:
    """`requests_from_ms` 0 leaves the requests before `up` out: for two real runs."""
    reference = Reference(real, requests_from_ms)
    return conclude(reference, [reference.examine(run) for run in runs], tolerance_ms)


def conclude(
    reference: Reference, examined: Sequence[Examined], tolerance_ms: float = TOLERANCE_MS
) -> Verdict:
    assert examined, "a verdict needs at least one run"
    nearest = min(examined, key=lambda run: run.distance)
    agreeing = [run for run in examined if run.agrees]
    missed = _missed(agreeing or [nearest])
    timings = tuple(_timings(reference, _judged_by_time(examined, agreeing), tolerance_ms))
    fine = not any(missed.values()) and all(timing.inside for timing in timings)
    return Verdict(
        recording=reference.real.name,
        matched=bool(agreeing) and fine,
        seeds=len(examined),
        agreeing=tuple(run.run for run in agreeing),
        points={point: not missed[point] for point in _ALL_POINTS},
        agreeing_by_point={point: _count_equal(examined, point) for point in _ALL_POINTS},
        nearest_run=nearest.run,
        nearest_differences={point: _first(nearest, point) for point in _ALL_POINTS},
        differences=tuple(difference for point in missed.values() for difference in point),
        timings=timings,
    )


def _count_equal(examined: Sequence[Examined], point: int) -> int:
    return sum(not run.differences[point] for run in examined)


def _first(run: Examined, point: int) -> Difference | None:
    return next(iter(run.differences[point]), None)


def _missed(runs: Sequence[Examined]) -> dict[int, tuple[Difference, ...]]:
    """By point, the keys in which none of the runs is equal.

    Runs that agree have no difference in 1, 3 and 4; where none does, there is the nearest alone.
    """
    return {point: tuple(_in_all(runs, point)) for point in (*AGREED, *BY_KEY)}


def _in_all(runs: Sequence[Examined], point: int) -> Iterator[Difference]:
    elsewhere = [{difference.key for difference in run.differences[point]} for run in runs[1:]]
    for difference in runs[0].differences[point]:
        if all(difference.key in keys for keys in elsewhere):
            yield difference


def _judged_by_time(
    examined: Sequence[Examined], agreeing: Sequence[Examined]
) -> Sequence[Examined]:
    return agreeing if len(agreeing) >= ENOUGH_AGREEING else examined


def _timings(
    reference: Reference, runs: Sequence[Examined], tolerance_ms: float
) -> Iterator[Timing]:
    for what, recorded_ms in reference.delays.items():
        taken = [run.delays[what] for run in runs if what in run.delays]
        yield _timing(what, recorded_ms, taken, reference.slack_ms(what, tolerance_ms))


def _timing(what: str, recorded_ms: int, taken: list[int], slack: float) -> Timing:
    if not taken:
        return Timing(what, recorded_ms, None, None, None, inside=False)
    low, high = min(taken), max(taken)
    inside = low - slack <= recorded_ms <= high + slack
    return Timing(what, recorded_ms, low, nearest_rank(sorted(taken), 50), high, inside)


def _differences(
    point: int, real: dict[str, list[Entry]], run: dict[str, list[Entry]]
) -> Iterator[Difference]:
    for key in all_keys(real, run):
        ours, theirs = real.get(key, []), run.get(key, [])
        if ours != theirs:
            yield _difference(point, key, ours, theirs)


def _tally_differences(real: dict[str, Tally], run: dict[str, Tally]) -> Iterator[Difference]:
    for key in all_keys(real, run):
        ours, theirs = real.get(key), run.get(key)
        if not same_tally(ours, theirs):
            yield _difference(PRODUCED, key, *_listed(ours, theirs))


def _listed(real: Tally | None, run: Tally | None) -> tuple[list[Entry], list[Entry]]:
    """Two tallies for the eye: with counts where there are two, else only which results."""
    if real and run:
        return list(real.items()), list(run.items())
    return list(real or ()), list(run or ())


def _difference(point: int, key: str, real: list[Entry], run: list[Entry]) -> Difference:
    at = first_unequal(real, run)
    before, until = real[max(0, at - _SHOWN) : at], at + _SHOWN
    return Difference(point, key, at, tuple(before), tuple(real[at:until]), tuple(run[at:until]))


def first_unequal(real: Sequence[Entry], run: Sequence[Entry]) -> int:
    """Where two lanes first differ; where one ends, if all that both have is alike."""
    pairs = enumerate(zip(real, run, strict=False))
    return next((i for i, (ours, theirs) in pairs if ours != theirs), min(len(real), len(run)))
