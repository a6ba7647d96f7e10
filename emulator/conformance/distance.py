"""Whether emulated runs are as similar to real runs as real runs are to each other.

Owns the distance of two runs as `shared/tools/distance-of-recordings` defines it: per point,
averaged over its keys, one minus the fraction of entries that both have in the same order; and the
permutation test on the energy distance between the two samples. For the same p-value the shuffles
must be those of the definition (Python's own generator, seed 1), so this module imports `random`,
without any influence on runs.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
    def excess(self) -> float:
        """How far the emulated runs are beyond what is near enough; negative if they are not."""
        return self.run_to_real - NEAR_ENOUGH * self.real_to_real

    @property
    def ratio(self) -> float | None:
        """None: the real runs do not differ."""
        return self.run_to_real / self.real_to_real if self.real_to_real else None


class Relabelings(msgspec.Struct, frozen=True):
    """Of random relabelings, which call any of the runs real: the fraction whose emulated runs are
    at least as far beyond `NEAR_ENOUGH` (a p-value), and the fraction that is beyond it at all. The
    second is how often emulated runs exceed it that are no different from real ones."""

    as_far: float
    too_far: float


class Distance(msgspec.Struct, frozen=True):
    """Median distances (to three places, as defined), and those of relabelings, by point; and the
    p-value of the test."""

    points: dict[str, Medians]
    relabelings: dict[str, Relabelings]
    p: float

    @property
    def near_enough(self) -> bool:
        """Whether the distance to real runs is at most their own, in every point."""
        return all(medians.near_enough for medians in self.points.values())

    def as_json(self) -> dict[str, object]:
        """What the definition's tool prints."""
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
    far, count = _distances_of_pairs([*reals, *runs]), len(reals)
    members = list(range(count + len(runs)))
    points = {point: _medians(far[point], members, count) for point in far}
    seen = _energy(far[ALL], members, count)
    shuffles, at_least_as_distant = definition_shuffles(1), 0
    as_far, too_far = dict.fromkeys(far, 1), dict.fromkeys(far, 0)
    for _ in range(PERMUTATIONS):
        shuffles.shuffle(members)
        at_least_as_distant += _energy(far[ALL], members, count) >= seen - _ROUNDING
        for point in far:
            medians = _medians(far[point], members, count)
            as_far[point] += medians.excess >= points[point].excess - _ROUNDING
            too_far[point] += not medians.near_enough
    relabelings = {
        point: Relabelings(as_far[point] / (PERMUTATIONS + 1), too_far[point] / PERMUTATIONS)
        for point in far
    }
    return Distance(points, relabelings, (at_least_as_distant + 1) / (PERMUTATIONS + 1))


def real_runs_too_far(reals: Sequence[Recording]) -> dict[str, int]:
    """How many of the real runs are not near enough, by point, if each takes the place of an
    emulated one and is held to the others. With few recordings, many real runs are not."""
    assert len(reals) >= 3, "the others have a distance to each other"
    far, numbers = _distances_of_pairs(reals), range(len(reals))
    too_far = dict.fromkeys(far, 0)
    for point, left_out in product(too_far, numbers):
        in_turn = [*(n for n in numbers if n != left_out), left_out]
        too_far[point] += not _medians(far[point], in_turn, len(reals) - 1).near_enough
    return too_far


def _medians(far: Mapping[Pair, float], members: Sequence[int], reals: int) -> Medians:
    """Of these members, the first are the real ones."""
    real, run = members[:reals], members[reals:]
    to_each_other = median([far[pair] for pair in combinations(real, 2)])
    return Medians(round(to_each_other, 3), round(median([far[p] for p in product(real, run)]), 3))


def _distances_of_pairs(recordings: Sequence[Recording]) -> dict[str, dict[Pair, float]]:
    """By point, of each two in either order, and of what the first recording's version logs."""
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
    far: dict[str, dict[Pair, float]] = defaultdict(dict)
    for i, j in combinations(range(len(profiles)), 2):
        for point, distance in _distances(profiles[i], profiles[j]).items():
            far[point][i, j] = far[point][j, i] = distance
    return far


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


def _energy(distances: Mapping[Pair, float], members: Sequence[int], reals: int) -> float:
    """The energy distance of two samples: 0 when both come from one source."""
    xs, ys = members[:reals], members[reals:]
    across = fmean([distances[pair] for pair in product(xs, ys)])
    return 2 * across - _within(distances, xs) - _within(distances, ys)


def _within(distances: Mapping[Pair, float], members: Sequence[int]) -> float:
    return fmean([distances[pair] for pair in combinations(members, 2)] or [0.0])
