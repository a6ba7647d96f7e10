"""A grid of runs: settings times versions times paths times seeds, cut into batches.

Owns the runs, their names and their batches: the same grid always gives the same ones, so that a
resumed sweep recognizes what is complete. Knows nothing of Spark, and no file but the scenario's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice, product
from pathlib import Path

import msgspec

from emulator.runs.run_directory import versions
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.version import VersionOptions

BATCH_RUNS = 10
TRACES = ("all", "violations", "none")


class Point(msgspec.Struct, frozen=True):
    """One combination of settings, version and path."""

    sets: tuple[str, ...]
    chosen: VersionOptions


class Grid(msgspec.Struct, frozen=True):
    """All runs of a sweep. `text` is the scenario file's, so that executors need no file."""

    name: str
    source: str
    text: str
    points: tuple[Point, ...]
    first_seed: int
    seeds: int
    traces: str = "all"

    @property
    def runs(self) -> int:
        return len(self.points) * self.seeds

    def scenario(self, point: Point) -> LoadedScenario:
        """The scenario with a point's settings. UserError."""
        return loads(self.text, self.name, self.source, point.sets, point.chosen)

    def digest(self) -> str:
        """A digest of everything that determines the runs: points, seeds, scenario and code."""
        content = msgspec.structs.replace(self, source="")
        return sha256(msgspec.json.encode((content, versions()["code"]))).hexdigest()[:16]


class Batch(msgspec.Struct, frozen=True):
    """Some seeds of one point, played by one task."""

    number: int
    point: Point
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its file in `runs/`."""
        return f"batch-{self.number:06}"


def batches(grid: Grid) -> Iterator[Batch]:
    """All batches; points alternate, so that the first results cover every point."""
    number = 0
    seeds = iter(range(grid.first_seed, grid.first_seed + grid.seeds))
    while some := tuple(islice(seeds, BATCH_RUNS)):
        for point in grid.points:
            yield Batch(number, point, some)
            number += 1


def run_name(point: Point, seed: int) -> str:
    """A run's name: its seed, and a hash of its settings if there are any."""
    words = [*point.sets, *point.chosen.guards]
    if not words:
        return f"{seed:#x}"
    return f"{seed:#x}-{sha256(' '.join(sorted(words)).encode()).hexdigest()[:8]}"


def points(
    sets: Sequence[str], profiles: Sequence[str], propagations: Sequence[str], guards: Sequence[str]
) -> tuple[Point, ...]:
    """Every combination of settings (`KEY=a,b`), versions and paths; guards apply to all.
    UserError."""
    choices, keys = [], []
    for text in sets:
        key, equals, values = text.partition("=")
        values_ = [value.strip() for value in values.split(",")]
        if not equals or not all(values_):
            raise UserError(f"--set {text}: write KEY=VALUE or KEY=VALUE,VALUE")
        keys.append(key.strip())
        choices.append([f"{key.strip()}={value}" for value in dict.fromkeys(values_)])
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated:
        raise UserError(f"--set {repeated}: set more than once; write {repeated}=a,b")
    versions_ = [
        VersionOptions(profile, tuple(guards), propagation)
        for profile, propagation in product(profiles or [""], propagations or [""])
    ]
    return tuple(Point(one, chosen) for chosen in versions_ for one in product(*choices))


def grid_of(source: Path, text: str, points_: tuple[Point, ...], first: int, seeds: int) -> Grid:
    """A grid; checks that the scenario loads with every point. UserError."""
    grid = Grid(source.name.partition(".")[0], str(source), text, points_, first, seeds)
    for point in points_:
        grid.scenario(point)
    return grid
