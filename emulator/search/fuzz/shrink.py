"""A failing world made small: faults, clients and topics that it fails without are left out, and
what is left lasts no longer than it must.

Owns what is left out in which order, and when it has had enough of attempts. The same invariant has
to break in each world that it keeps. It knows no action by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import yaml

from emulator.runs.minimize import minimize
from emulator.search.fuzz.trial import Trial, try_world
from emulator.search.fuzz.worlds import written

ATTEMPTS_MAX = 150
_LISTS = ("faults", "workload")

World = dict[str, Any]


def shrink(text: str, seed: int, attempts: int = ATTEMPTS_MAX) -> str:
    """A smaller world that fails in the same way under the same seed; the same text if there is
    none."""
    expected = _kinds(try_world(text, seed))
    left = attempts

    def fails(world: World) -> bool:
        nonlocal left
        if left <= 0:
            return False
        left -= 1
        return bool(expected & _kinds(try_world(written(world), seed)))

    world: World = yaml.safe_load(text)

    def fails_with(section: str, entries: Sequence[Any]) -> bool:
        return fails({**world, section: list(entries)})

    for section in _LISTS:
        world[section] = list(minimize(world[section], partial(fails_with, section)))
    for topic in list(world["topics"]):
        fewer = {name: value for name, value in world["topics"].items() if name != topic}
        if fails({**world, "topics": fewer}):
            world["topics"] = fewer
    return written(world)


def _kinds(trial: Trial) -> set[str]:
    return {failure.invariant for failure in trial.ours}
