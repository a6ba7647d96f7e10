"""Compares several real runs of one script with blind emulated runs of it.

The actions of each real run are played equally often, with separate seeds. Owns these plays; the
distance and its test are in `distance`. This module must not know what makes runs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from emulator.conformance.distance import Distance, distance
from emulator.conformance.player import Script, simulate
from emulator.conformance.recording import Recording
from emulator.runs.forks import in_children


class Near(msgspec.Struct, frozen=True):
    """The distance between some emulated and some real runs."""

    recordings: tuple[str, ...]
    runs: int
    distance: Distance

    def as_json(self) -> dict[str, object]:
        return {
            "recordings": self.recordings,
            "runs": self.runs,
            "near_enough": self.distance.near_enough,
            "distance": self.distance.as_json(),
            "by_chance": {
                point: msgspec.structs.asdict(relabelings)
                for point, relabelings in self.distance.relabelings.items()
            },
        }


OnRun: TypeAlias = Callable[[int, int, Recording], object]
"""Called with the index of the script, the seed, and the play's recording."""


def near(
    reals: Sequence[Recording],
    scripts: Sequence[Script],
    seeds: int,
    jobs: int,
    on_played: Callable[[int], object],
    on_run: OnRun = lambda script, seed, run: None,
) -> Near:
    plays = [(nth % len(scripts), nth + 1) for nth in range(seeds * len(scripts))]

    def play(one: tuple[int, int]) -> Recording:
        script, seed = one
        run = simulate(scripts[script], seed)
        on_run(script, seed, run)
        return run

    runs: dict[int, Recording] = {}
    for index, run in in_children(plays, play, jobs):
        runs[index] = run
        on_played(len(runs))
    ours = [runs[index] for index in sorted(runs)]
    return Near(tuple(real.name for real in reals), len(ours), distance(reals, ours))
