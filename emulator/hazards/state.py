"""What was seen when the whole catalogue was last played: `seen.json`, written by `make hazards`.

Owns the file's form. It is a record of what a run said, never what anything is judged by.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from emulator.hazards.minimal import Shortest

FILE = Path(__file__).resolve().parent / "catalogue" / "seen.json"


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the plays on a real server: whether it was seen there and its cure held, in how
    many plays of both sides together (two at least), on which commit."""

    seen: bool
    plays: int
    commit: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard: what broke without the cure (in words), how many steps its schedule has, in how
    many entries, and how many of these it does not need, milliseconds of both plays together, and
    which commit that was. `shortest`: what a search found, breadth first. `live`: null where it was
    not tried on a real server."""

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
        """How short the schedule is, in words."""
        one, entries = self.shortest, self.entries
        can_go = f"{self.needless} can be left out" if self.needless else "none can be left out"
        tried = f"{one.tried} shorter {'one was' if one.tried == 1 else 'ones were'} tried"
        if one.entries < entries:
            searched = f"breadth first one of {one.entries} does it"
        else:
            searched = f"{tried} breadth first, {'' if one.ended else 'not all, '}none does it"
        return f"{entries} {'entry' if entries == 1 else 'entries'}, {can_go}; {searched}"


def seen() -> dict[str, Seen]:
    """By the hazard's name; empty where nothing was played yet."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Seen])


def keep(records: dict[str, Seen]) -> None:
    """Write it down."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n")
