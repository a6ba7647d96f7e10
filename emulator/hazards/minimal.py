"""Whether a hazard's schedule is minimal.

A shorter schedule has fewer entries of the workload and the faults; the end of a fault is part of
its entry. The search is breadth first, by length. A shorter schedule counts if it violates the same
and nothing else, and, if expectations are violated, if the cure still repairs it. Knows no hazard
by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import yaml

from emulator.hazards.entry import Entry
from emulator.hazards.reproduce import play_side_in_memory
from emulator.runs import minimize
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads

SECTIONS = ("workload", "faults")
PLAYS_MAX = 130


class Place(NamedTuple):
    """One entry of the schedule: the `number`-th of a section."""

    section: str
    number: int


class Shortest(msgspec.Struct, frozen=True):
    """The result of a search: the length of the shortest schedule in entries, and how many shorter
    ones than the original were tried. `ended`: all of those, up to the shortest."""

    entries: int
    tried: int
    ended: bool

    @property
    def words(self) -> str:
        """The text for a table."""
        return f"{self.entries}" if self.ended else f"{self.entries} …"


class Schedule:
    """The entries of one hazard's scenario, and the scenario reduced to some of them."""

    def __init__(self, entry: Entry) -> None:
        self._entry, self._text = entry, entry.scenario().text
        self._document: dict[str, object] = yaml.safe_load(self._text)
        self._entries: dict[str, list[object]] = {
            section: entries
            for section in SECTIONS
            if isinstance(entries := self._document.get(section), list)
        }
        self._breaks = {one.invariant for one in play_side_in_memory(entry).violations}
        self.places = tuple(
            Place(section, number)
            for section, entries in self._entries.items()
            for number in range(len(entries))
        )

    def words(self, place: Place) -> str:
        """The entry's YAML."""
        return f"{place.section}[{place.number}]: {self._entries[place.section][place.number]}"

    def reproduces(self, places: Sequence[Place]) -> bool:
        """Whether the hazard occurs with only these entries."""
        entry, cure = self._entry, self._entry.cure
        less = {
            section: [entries[number] for of, number in places if of == section]
            for section, entries in self._entries.items()
        }
        text = yaml.safe_dump({**self._document, **less})
        try:
            side = play_side_in_memory(entry, scenario=loads(text, entry.name))
        except UserError:
            return False
        breaks_more = not {one.invariant for one in side.violations} <= self._breaks
        if not side.is_as_expected or breaks_more:
            return False
        if not side.expectations:
            return True
        # An expectation may fail because the reduced scenario cannot meet it; then it fails with
        # the cure, too.
        cured = loads(text, entry.name, sets=cure.sets, chosen=cure.chosen)
        return play_side_in_memory(entry, cured=True, scenario=cured).is_as_expected


def needless(entry: Entry) -> list[str]:
    """The entries that are each unnecessary for the hazard, as text; a minimal schedule has
    none."""
    schedule = Schedule(entry)
    return [
        schedule.words(place) for place in minimize.needless(schedule.places, schedule.reproduces)
    ]


def shortest(entry: Entry, plays_max: int = PLAYS_MAX) -> Shortest:
    """The length of the shortest schedule, breadth first."""
    schedule, tried = Schedule(entry), 0
    for length in range(len(schedule.places)):
        for places in combinations(schedule.places, length):
            if tried >= plays_max:
                return Shortest(len(schedule.places), tried, ended=False)
            tried += 1
            if schedule.reproduces(places):
                return Shortest(length, tried, ended=True)
    return Shortest(len(schedule.places), tried, ended=True)
