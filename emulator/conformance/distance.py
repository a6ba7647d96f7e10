"""Whether emulated runs are as similar to real runs as real runs are to each other.

Owns the distance of two runs as `shared/tools/distance-of-recordings` defines it: per point,
averaged over its keys, one minus the fraction of entries that both have in the same order; and the
permutation test on the energy distance between the two samples. For the same p-value the shuffles
must be those of the definition (Python's own generator, seed 1), so this module imports `random`,
without any influence on runs.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import combinations, product
from statistics import fmean, median
from typing import TypeAlias, TypeVar

import msgspec

from emulator.conformance.criteria import POINTS, PRODUCED, entries_of, lens_of
from emulator.conformance.producers import (
    ResultCounts,
    has_equal_counts,
    result_counts_of,
    stalls_of,
)
from emulator.conformance.recording import Recording
from emulator.kernel.rng import definition_shuffles

ALL = "all"
NEAR_ENOUGH = 1.1
PERMUTATIONS = 999
_ROUNDING = 1e-12

V = TypeVar("V")
Pair: TypeAlias = tuple[int, int]


class Medians(msgspec.Struct, frozen=True):
    real_to_real: float
    run_to_real: float

    @property
    def near_enough(self) -> bool:
        return self.run_to_real <= NEAR_ENOUGH * self.real_to_real

    @property
    def ratio(self) -> float | None:
        """None: the real runs do not differ."""
        return self.run_to_real / self.real_to_real if self.real_to_real else None


class Distance(msgspec.Struct, frozen=True):
    """Median distances (to three places, as defined) by point, and the p-value of the test."""

    points: dict[str, Medians]
    p: float

    @property
    def near_enough(self) -> bool:
        """Whether the distance to real runs is at most their own, in every point."""
        return all(medians.near_enough for medians in self.points.values())

    def as_json(self) -> dict[str, object]:
        points = {point: msgspec.structs.asdict(one) for point, one in self.points.items()}
        return {**points, "p": self.p}


class _Profile(msgspec.Struct, frozen=True):
    """One run for comparison: the entries of each criterion and key as text, and its result
    counts.
    """

    lanes: dict[int, dict[str, list[str]]]
    result_counts: dict[str, ResultCounts]


def distance(reals: Sequence[Recording], runs: Sequence[Recording]) -> Distance:
    """Compare what the first real recording's version logs, from `up` on."""
    assert len(reals) >= 2, "the distance between real runs needs two of them"
    assert runs, "the distance to real runs needs a run"
    distances, count = _distances_of_pairs([*reals, *runs]), len(reals)
    points = {}
    for point in distances[0, 1]:
        real = [by_point[point] for (_, j), by_point in distances.items() if j < count]
        run = [by_point[point] for (i, j), by_point in distances.items() if i < count <= j]
        points[point] = _medians(real, run)

    overall = {pair: by_point[ALL] for pair, by_point in distances.items()}
    overall |= {(j, i): far for (i, j), far in overall.items()}
    members = list(range(count + len(runs)))
    seen = _energy(overall, members, count)
    shuffles, at_least_as_distant = definition_shuffles(1), 0
    for _ in range(PERMUTATIONS):
        shuffles.shuffle(members)
        at_least_as_distant += _energy(overall, members, count) >= seen - _ROUNDING
    return Distance(points, (at_least_as_distant + 1) / (PERMUTATIONS + 1))


def real_runs_too_far(reals: Sequence[Recording]) -> dict[str, int]:
    """How many of the real runs are not near enough, by point, if each takes the place of an
    emulated one and is held to the others. With few recordings, many real runs are not."""
    assert len(reals) >= 3, "the others have a distance to each other"
    distances = _distances_of_pairs(reals)
    too_far = dict.fromkeys(distances[0, 1], 0)
    for point, left_out in product(too_far, range(len(reals))):
        others = [by_point[point] for pair, by_point in distances.items() if left_out not in pair]
        own = [by_point[point] for pair, by_point in distances.items() if left_out in pair]
        too_far[point] += not _medians(others, own).near_enough
    return too_far


def _medians(real: Sequence[float], run: Sequence[float]) -> Medians:
    return Medians(round(median(real), 3), round(median(run), 3))


def _distances_of_pairs(recordings: Sequence[Recording]) -> dict[Pair, dict[str, float]]:
    """By point, of what the first recording's version logs."""
    lens = lens_of(recordings[0], requests_from_ms=0)
    profiles = []
    for recording in recordings:
        lanes = {
            point: {
                key: [repr(entry) for entry in entries]
                for key, entries in entries_of(point, recording, lens).items()
            }
            for point in POINTS
        }
        profiles.append(_Profile(lanes, result_counts_of(recording, stalls_of(recording))))
    pairs = combinations(range(len(profiles)), 2)
    return {(i, j): _distances(profiles[i], profiles[j]) for i, j in pairs}


def _distances(a: _Profile, b: _Profile) -> dict[str, float]:
    """The distance of two runs by point ("1" to "7") and in total."""

    def distance_of_entries(a: list[str] | None, b: list[str] | None) -> float:
        if a == b:
            return 0.0
        return 1 - SequenceMatcher(None, a or [], b or [], autojunk=False).ratio()

    points = {
        str(point): _mean_distance(a.lanes[point], b.lanes[point], distance_of_entries)
        for point in POINTS
    }
    points[str(PRODUCED)] = _mean_distance(
        a.result_counts, b.result_counts, lambda a, b: float(not has_equal_counts(a, b))
    )
    return {**points, ALL: fmean(points.values())}


def _mean_distance(
    a: dict[str, V], b: dict[str, V], distance: Callable[[V | None, V | None], float]
) -> float:
    keys = a.keys() | b.keys()
    return fmean([distance(a.get(key), b.get(key)) for key in keys]) if keys else 0.0


def _energy(distances: dict[Pair, float], members: Sequence[int], reals: int) -> float:
    """The energy distance of two samples: 0 when both come from one source."""
    xs, ys = members[:reals], members[reals:]
    across = fmean([distances[pair] for pair in product(xs, ys)])
    return 2 * across - _within(distances, xs) - _within(distances, ys)


def _within(distances: dict[Pair, float], members: Sequence[int]) -> float:
    return fmean([distances[pair] for pair in combinations(members, 2)] or [0.0])
