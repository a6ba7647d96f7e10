"""Every hazard of the catalogue breaks what it says, and nothing with its cure; no step is there
for nothing."""

from __future__ import annotations

import pytest

from emulator.hazards.entry import Entry, catalogue
from emulator.hazards.minimal import needless
from emulator.hazards.reproduce import play_side_in_memory

ENTRIES = list(catalogue().values())


def named(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_it_is_reproduced(entry: Entry) -> None:
    side = play_side_in_memory(entry)
    assert side.is_as_expected, side.messages


@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_with_its_cure_nothing_breaks(entry: Entry) -> None:
    side = play_side_in_memory(entry, cured=True)
    assert side.is_as_expected, side.messages


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=named)
def test_its_schedule_has_no_step_too_many(entry: Entry) -> None:
    assert needless(entry) == []
