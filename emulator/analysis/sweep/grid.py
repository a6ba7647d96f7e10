"""A grid of runs: settings times versions times paths times seeds, cut into batches.

Owns what is run and what each run is called, so that the same grid is the same runs in the same
batches whoever plays them, and a resumed sweep finds its own. Knows no Spark and no files but the
scenario's.
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
    """One setting of the grid."""

    sets: tuple[str, ...]
    chosen: VersionOptions


class Grid(msgspec.Struct, frozen=True):
    """All of it; `text` is the scenario's, so that whoever plays a batch needs no file."""

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
        """What a point plays. UserError."""
        return loads(self.text, self.name, self.source, point.sets, point.chosen)

    def digest(self) -> str:
        """What decides every run of the grid: its points, seeds, the scenario and the code."""
        said = msgspec.structs.replace(self, source="")
        return sha256(msgspec.json.encode((said, versions()["code"]))).hexdigest()[:16]


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
    """All of them, points in turn, so that the first results show something of each."""
    number = 0
    seeds = iter(range(grid.first_seed, grid.first_seed + grid.seeds))
    while some := tuple(islice(seeds, BATCH_RUNS)):
        for point in grid.points:
            yield Batch(number, point, some)
            number += 1


def run_name(point: Point, seed: int) -> str:
    """A run's name: its seed, and its settings if there are any."""
    words = [*point.sets, *point.chosen.guards]
    if not words:
        return f"{seed:#x}"
    return f"{seed:#x}-{sha256(' '.join(sorted(words)).encode()).hexdigest()[:8]}"


def points(
    sets: Sequence[str], profiles: Sequence[str], propagations: Sequence[str], guards: Sequence[str]
) -> tuple[Point, ...]:
    """The product of all that has several values: `KEY=a,b`, versions, paths; guards are for all.
    UserError."""
    choices = [_choices(text) for text in sets]
    keys = [choice[0].partition("=")[0] for choice in choices]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise UserError(f"--set {twice}: given twice; write {twice}=a,b")
    versions_ = [
        VersionOptions(profile, tuple(guards), propagation)
        for profile, propagation in product(profiles or [""], propagations or [""])
    ]
    return tuple(Point(one, chosen) for chosen in versions_ for one in product(*choices))


def _choices(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not equals or not all(found):
        raise UserError(f"--set {text}: write KEY=VALUE or KEY=VALUE,VALUE")
    return [f"{key.strip()}={value}" for value in dict.fromkeys(found)]


def grid_of(source: Path, text: str, found: tuple[Point, ...], first: int, seeds: int) -> Grid:
    """A grid, each of whose points can be loaded. UserError."""
    grid = Grid(source.name.partition(".")[0], str(source), text, found, first, seeds)
    for point in found:
        grid.scenario(point)
    return grid
