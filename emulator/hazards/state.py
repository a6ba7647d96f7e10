"""The results of the last play of the whole catalogue: `seen.json`, written by `make hazards`.

Owns the file's format. It is only a record; nothing is judged by it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from emulator.hazards.minimal import Shortest

FILE = Path(__file__).resolve().parent / "catalogue" / "seen.json"


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """The result on a real server: whether the hazard was reproduced and the cure worked, in how
    many plays of both sides together (at least two), on which commit."""

    seen: bool
    plays: int
    commit: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard: its violations without the cure (as text), the number of steps and of entries of
    its schedule, how many entries are unnecessary, the duration of both plays in milliseconds, and
    the commit. `shortest`: the result of a breadth-first search. `live`: null if not tried on a
    real server."""

    reproduced: bool
    cured: bool
    message: str = msgspec.field(name="said")
    steps: int
    entries: int
    needless: int
    shortest: Shortest
    wall_ms: int
    commit: str
    live: Live | None = None

    @property
    def is_as_expected(self) -> bool:
        return self.reproduced and self.cured

    @property
    def length(self) -> str:
        """The length of the schedule as text."""
        one, entries = self.shortest, self.entries
        can_go = f"{self.needless} can be left out" if self.needless else "none can be left out"
        tried = f"{one.tried} shorter {'one was' if one.tried == 1 else 'ones were'} tried"
        if one.entries < entries:
            searched = f"breadth first one of {one.entries} does it"
        else:
            searched = f"{tried} breadth first, {'' if one.ended else 'not all, '}none does it"
        return f"{entries} {'entry' if entries == 1 else 'entries'}, {can_go}; {searched}"


def seen() -> dict[str, Seen]:
    """By hazard name; empty before the first `make hazards`."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Seen])


def keep(records: dict[str, Seen]) -> None:
    """Write the file."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n")
