"""What was seen when the whole catalogue was last played: `seen.json`, written by `make hazards`.

Owns the file's form. It is a record of what a run said, never what anything is judged by.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

FILE = Path(__file__).resolve().parent / "seen.json"


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the plays on a real server: whether it was seen there and its cure held, in how
    many plays of both sides together (two at least), on which commit."""

    seen: bool
    plays: int
    commit: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard: what broke without the cure (in words), how many steps its schedule has and how
    many of them it does not need, milliseconds of both plays together, and which commit that
    was. `live`: null where it was not tried on a real server."""

    reproduced: bool
    cured: bool
    said: str
    steps: int
    needless: int
    wall_ms: int
    commit: str
    live: Live | None = None

    @property
    def as_wanted(self) -> bool:
        return self.reproduced and self.cured


def seen() -> dict[str, Seen]:
    """By the hazard's name; empty where nothing was played yet."""
    if not FILE.exists():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Seen])


def keep(found: dict[str, Seen]) -> None:
    """Write it down."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
