"""The picture of the house: `docs/pictures/architecture.svg`, drawn from the imports.

One row per room, from the top floor down: its name, its purpose (the first line of the package's
docstring), its lines of code, and a dot in the column of each room that it imports from. A room
imports only from rooms below it, so every dot lies right of the diagonal; one left of it would be
an import that points up, which import-linter refuses.

    python -m tools.documents.architecture          writes the picture
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import grimp
import jinja2
import msgspec

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"


class Room(msgspec.Struct, frozen=True):
    """A package of `emulator`, or `zk`. `floor`: its place in the contract of layers, 0 on top.
    `uses`: the rooms it imports from, with the number of importing lines."""

    name: str
    floor: int
    purpose: str
    lines: int
    uses: dict[str, int]


def floors() -> dict[str, int]:
    """Each room's floor, from pyproject's contract; `zk` is the ground."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["id"] == "layers")
    by_room = {n: floor for floor, layer in enumerate(layers) for n in re.findall(r"\w+", layer)}
    return by_room | {"zk": len(layers)}


def rooms() -> list[Room]:
    """All rooms, top floor first."""
    graph = grimp.build_graph("emulator", "zk", cache_dir=None)
    of_room: dict[str, dict[str, int]] = {name: {} for name in floors()}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            user, used = _room_of(module), _room_of(imported)
            if user in of_room and used in of_room and user != used:
                of_room[user][used] = of_room[user].get(used, 0) + 1
    return [
        Room(name, floor, _purpose(name), _lines(name), of_room[name])
        for name, floor in sorted(floors().items(), key=lambda item: (item[1], item[0]))
    ]


def _room_of(module: str) -> str:
    top, *rooms = module.split(".")
    return rooms[0] if top == "emulator" and rooms else top


def _place(room: str) -> Path:
    folder = ROOT / "zk" if room == "zk" else ROOT / "emulator" / room
    return folder if folder.is_dir() else folder.with_suffix(".py")


def _purpose(room: str) -> str:
    place = _place(room)
    text = (place / "__init__.py" if place.is_dir() else place).read_text(encoding="utf-8")
    return (
        (ast.get_docstring(ast.parse(text)) or "")
        .split("\n\n")[0]
        .replace("\n", " ")
        .replace("`", "")
    )


def _lines(room: str) -> int:
    place = _place(room)
    files = place.rglob("*.py") if place.is_dir() else [place]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def svg(all_rooms: list[Room]) -> str:
    """The picture; it follows the reader's light or dark scheme."""
    column = {room.name: 799 + 26 * n for n, room in enumerate(all_rooms)}
    template = Path(__file__).with_suffix(".svg.j2").read_text(encoding="utf-8")
    return jinja2.Template(template, autoescape=True, keep_trailing_newline=True).render(
        rooms=all_rooms,
        column=column,
        most=max(room.lines for room in all_rooms),
        width=max(column.values()) + 33,
        height=30 * len(all_rooms) + 116,
    )


if __name__ == "__main__":
    PICTURE.write_text(svg(rooms()), encoding="utf-8")
