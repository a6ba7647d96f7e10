"""A failing world made small: faults, clients and topics that it fails without are left out, and
what is left lasts no longer than it must.

Owns the order of attempts (halves first, then one by one) and when it has had enough of them. The
same invariant has to break in each world that it keeps. It knows no stimulus by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from emulator.search.fuzz.trial import Trial, try_world
from emulator.search.fuzz.worlds import written

ATTEMPTS_MAX = 150
_LISTS = ("faults", "workload")

World = dict[str, Any]
Fails = Callable[[World], bool]


def shrink(text: str, seed: int, attempts: int = ATTEMPTS_MAX) -> str:
    """A smaller world that fails in the same way under the same seed; the same text if there is
    none."""
    wanted = _kinds(try_world(text, seed))
    left = attempts

    def fails(world: World) -> bool:
        nonlocal left
        if left <= 0:
            return False
        left -= 1
        return bool(wanted & _kinds(try_world(written(world), seed)))

    world: World = yaml.safe_load(text)
    for name in _LISTS:
        world = _fewer(world, name, fails)
    for topic in list(world["topics"]):
        less = {**world, "topics": {k: v for k, v in world["topics"].items() if k != topic}}
        world = less if fails(less) else world
    return written(world)


def _kinds(trial: Trial) -> set[str]:
    return {failure.invariant for failure in trial.ours}


def _fewer(world: World, name: str, fails: Fails) -> World:
    """Leave out as many entries of a list as it takes: pieces of half its length, a quarter ..."""
    size = max(1, len(world[name]) // 2)
    while world[name]:
        at = 0
        while at < len(world[name]):
            entries = world[name][:at] + world[name][at + size :]
            less = {**world, name: entries}
            if fails(less):
                world = less
            else:
                at += size
        if size == 1:
            return world
        size //= 2
    return world
