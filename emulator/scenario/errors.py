"""A user's mistakes: exceptions with a one-line message, which end the command with exit code 64.

The message says which file, line and key (or option) is wrong, why, and what is allowed. No
traceback is printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An invalid request by the user; the message is one line."""


class ScenarioError(UserError):
    """A mistake in a scenario file: `file:line: key: problem`."""

    def __init__(self, file: str, line: int, key: str, problem: str) -> None:
        where = f"{file}:{line}: {key}: " if key else f"{file}:{line}: "
        super().__init__(where + problem)
        self.file, self.line, self.key, self.problem = file, line, key, problem


def instead_of(wrong: str, allowed: Iterable[str]) -> str:
    """Suggestions for an unknown name: the nearest one, or all of them if there are few."""
    names = sorted(allowed)
    near = get_close_matches(wrong, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    if len(names) > 24:
        return f"there are {len(names)}, none like it"
    return f"allowed: {', '.join(names)}" if names else "nothing is allowed here"
