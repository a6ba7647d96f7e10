"""Unnecessary entries of a hazard's schedule, and the shortest schedule, breadth first."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.hazards.entry import Entry, catalogue, read_entry
from emulator.hazards.minimal import Schedule, needless, shortest
from emulator.hazards.state import seen

MORE = "{at: 1s, slow_disk: {broker: 3, ms_per_append: 1}}"
ONE_STEP = next(entry for entry in catalogue().values() if len(Schedule(entry).places) == 1)


@pytest.fixture
def with_a_step_too_many(tmp_path: Path) -> Entry:
    text = ONE_STEP.path.read_text(encoding="utf-8")
    file = tmp_path / "with-more.yaml"
    file.write_text(text.replace("faults:\n", f"faults:\n  - {MORE}\n"))
    return read_entry(file)


@pytest.mark.slow
def test_what_is_needed_is_not_needless() -> None:
    assert needless(ONE_STEP) == []
    assert shortest(ONE_STEP).entries == 1


def test_a_step_too_many_is_named(with_a_step_too_many: Entry) -> None:
    assert needless(with_a_step_too_many) == [
        "faults[0]: {'at': '1s', 'slow_disk': {'broker': 3, 'ms_per_append': 1}}"
    ]


def test_the_shortest_is_found_breadth_first(with_a_step_too_many: Entry) -> None:
    """First nothing at all, then the needless entry alone, then the one that does it."""
    found = shortest(with_a_step_too_many)
    assert (found.entries, found.tried, found.ended) == (1, 3, True)


@pytest.mark.slow
def test_a_search_that_may_not_try_all_says_so(with_a_step_too_many: Entry) -> None:
    found = shortest(with_a_step_too_many, plays_max=2)
    assert (found.entries, found.tried, found.ended) == (2, 2, False)


@pytest.mark.slow
def test_an_expectation_that_its_cure_does_not_mend_is_not_the_hazard() -> None:
    """Without actions an ISR does not shrink either, with the cure or without."""
    told = [entry for entry in catalogue().values() if not entry.violates]
    assert not any(Schedule(entry).reproduces([]) for entry in told)


def test_no_schedule_of_the_catalogue_is_long() -> None:
    """At most half as long again as the shortest one."""
    longer = [name for name, one in seen().items() if one.entries * 2 > one.shortest.entries * 3]
    assert longer == []
