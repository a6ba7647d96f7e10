"""The picture of the house shows the rooms and the imports that there are.

Lines of code change with every commit; the picture is drawn again when rooms or imports do.
"""

import re

from tools.documents.architecture import PICTURE, ROOT, Room, floors, rooms, svg

ARROW = re.compile(r"<title>(\w+) imports (\w+)</title>")


def test_the_picture_shows_the_imports_of_today() -> None:
    drawn = set(ARROW.findall(PICTURE.read_text(encoding="utf-8")))
    now = {(room.name, used) for room in rooms() for used in room.uses}
    assert drawn == now, "run: python -m tools.documents.architecture"


def test_no_import_points_up() -> None:
    floor = floors()
    assert all(floor[room.name] < floor[used] for room in rooms() for used in room.uses)


def test_there_are_at_most_sixteen_rooms_and_none_holds_a_fifth_of_the_lines() -> None:
    house = [room for room in rooms() if (ROOT / "emulator" / room.name).is_dir()]
    lines = sum(room.lines for room in rooms())
    assert len(house) <= 16
    assert max(room.lines for room in rooms()) <= lines / 5


def test_every_folder_under_emulator_has_its_floor() -> None:
    folders = {path.parent.name for path in (ROOT / "emulator").glob("*/__init__.py")}
    assert folders <= floors().keys()


def test_a_room_that_imports_another_has_a_dot_in_its_column() -> None:
    pair = [Room("a", 0, "A & B.", 10, {"b": 3}), Room("b", 1, "B.", 20, {})]
    picture = svg(pair)
    assert ARROW.findall(picture) == [("a", "b")]
    assert "A &amp; B." in picture
