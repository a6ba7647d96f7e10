"""A user's mistakes: an exception with one clear line, which ends the command with exit code 64.

The message is complete: which file, line and key (or which option), what is wrong there, and what
is allowed. No traceback is printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """What the user asked for cannot be; the message is one line."""


class ScenarioError(UserError):
    """A mistake in a scenario file: `file:line: key: problem`."""

    def __init__(self, file: str, line: int, key: str, problem: str) -> None:
        where = f"{file}:{line}: {key}: " if key else f"{file}:{line}: "
        super().__init__(where + problem)
        self.file, self.line, self.key, self.problem = file, line, key, problem


def instead_of(wrong: str, allowed: Iterable[str]) -> str:
    """What to say after an unknown name: the nearest one, or (when they are few) all of them."""
    names = sorted(allowed)
    near = get_close_matches(wrong, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    if len(names) > 24:
        return f"there are {len(names)}, none like it"
    return f"allowed: {', '.join(names)}" if names else "nothing is allowed here"
