"""The actions that are still in effect, and their undoing.

Shared by all interfaces that control a cluster interactively. Must not know where the cluster runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from emulator.scenario.actions.base import Action
from emulator.scenario.errors import UserError
from emulator.scenario.written import parameters


def standing_after(actions: Iterable[Action]) -> list[Action]:
    """The actions still in effect after all of these, in order."""
    standing: list[Action] = []
    for action in actions:
        standing = [one for one in standing if not action.undoes(one)]
        if action.healed() not in (None, action):
            standing.append(action)
    return standing


def chosen_to_heal(words: Sequence[str], standing: Sequence[Action]) -> list[Action]:
    """All of them, or those that match the words: `2`, `1 zookeeper`, `pause` (every word is the
    action's name or a parameter). Raises UserError if none matches."""
    chosen = [
        one
        for one in standing
        if all(word in (one.name, *map(str, parameters(one).values())) for word in words)
    ]
    if not chosen:
        known = "; ".join(map(words_of, standing)) or "none"
        raise UserError(
            f"heal {' '.join(words)}".strip() + f": no such fault; current faults: {known}"
        )
    return chosen


def words_of(action: Action) -> str:
    """`pause 2`."""
    values = (
        value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for value in parameters(action).values()
    )
    return " ".join((action.name, *values))
