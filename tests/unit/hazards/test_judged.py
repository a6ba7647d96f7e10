"""When a hazard counts as reproduced and as cured, and how failures are reported."""

from __future__ import annotations

import msgspec

from emulator.hazards.entry import Cure, Entry, catalogue
from emulator.hazards.reproduce import play_side_in_memory

SHORT = min(catalogue().values(), key=lambda entry: entry.scenario().duration_us)


def test_a_cure_that_cures_nothing_does_not_hold() -> None:
    """The side that breaks, judged as if it were the cured one."""
    useless: Entry = msgspec.structs.replace(SHORT, cure=Cure())
    side = play_side_in_memory(useless, cured=True)
    assert not side.is_as_expected and side.verdict == "not held" and side.messages


def test_what_breaks_something_else_is_not_reproduced() -> None:
    other: Entry = msgspec.structs.replace(SHORT, violates=("hw never decreases",))
    assert not play_side_in_memory(other).is_as_expected
