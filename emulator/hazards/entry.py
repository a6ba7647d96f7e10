"""The catalogue: hazards that can be reproduced, one file each.

An entry is a scenario file with an additional section `hazard`: tickets, versions, the violated
invariants, and the cure (guards, settings or a profile under which the same scenario violates
nothing). It can be played like any scenario. Owns reading that section. Only its own file knows an
entry's name.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from emulator.invariants.base import invariants
from emulator.scenario.document import Item, read_document, read_text
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.version import VersionOptions

PLACE = Path(__file__).resolve().parent / "catalogue"
_KEYS = ("title", "also", "facts", "versions", "fixed", "violates", "cure", "tolerates")
_KINDS = ("live", "self_check")
_SCALES = ("seed", "time_scale")
_CURES = ("guards", "config", "profile", "propagation", "because")


class Cure(msgspec.Struct, frozen=True):
    """Guards, settings or another version with which the scenario violates nothing. `explanation`
    (`because` in a file): why the cure is not what Kafka did."""

    chosen: VersionOptions = VersionOptions()
    sets: tuple[str, ...] = ()
    explanation: str = ""

    @property
    def words(self) -> list[str]:
        """The options for `isr run`."""
        return [*self.chosen.words(), *(word for pair in self.sets for word in ("--set", pair))]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One hazard. `violates`: the invariants that must be violated without the cure, all of them
    (and each expectation of the scenario). `tolerates`: those that may be violated with it.
    `facts`: its number in the list of hazards. `live`: it can be played on a real server.
    `self_check`: `isr fuzz` must detect it each time."""

    name: str
    path: Path
    title: str
    also: tuple[str, ...]
    facts: str
    versions: str
    fixed: str
    violates: tuple[str, ...]
    cure: Cure
    tolerates: tuple[str, ...] = ()
    live: bool = False
    self_check: bool = False
    seed: int = 1
    time_scale: int = 4

    def scenario(self, *, cured: bool = False) -> LoadedScenario:
        if not cured:
            return load(self.path)
        return load(self.path, self.cure.sets, self.cure.chosen)

    @property
    def story(self) -> str:
        return self.scenario().about


@cache
def catalogue() -> dict[str, Entry]:
    """All entries by name, in the order of their ticket numbers."""
    entries = [read_entry(path) for path in PLACE.glob("*.yaml")]
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: _number(entry.name))}


def _number(name: str) -> tuple[str, int, str]:
    kind, number, more = re.fullmatch(r"(\D*)(\d*)(.*)", name).groups()  # type: ignore[union-attr]
    return kind, int(number or 0), more


def find(name: str) -> Entry:
    """The entry with this name or ticket, in any spelling. Raises UserError."""
    lowered = name.lower()
    for entry in catalogue().values():
        if lowered == entry.name.lower():
            return entry
    for entry in catalogue().values():
        if lowered in (other.lower() for other in entry.also):
            return entry
    raise UserError(f"there is no hazard {name}; {instead_of(name, catalogue())}")


def read_entry(path: Path) -> Entry:
    """Raises UserError for an invalid file."""
    document = read_document(str(path), read_text(path, str(path)))
    sections = document.mapping()
    if "hazard" not in sections:
        document.fail("hazard is missing: what the scenario shows")
    keys = sections["hazard"].mapping((*_KEYS, *_KINDS, *_SCALES))
    for key in ("title", "versions", "cure"):
        if key not in keys:
            sections["hazard"].fail(f"{key} is missing")
    if "violates" not in keys and "expect" not in sections:
        sections["hazard"].fail("violates is missing, and expect: what goes wrong")
    return Entry(
        name=path.stem,
        path=path,
        title=keys["title"].text(),
        also=_texts(keys.get("also")),
        facts=keys["facts"].text() if "facts" in keys else "",
        versions=keys["versions"].text(),
        fixed=keys["fixed"].text() if "fixed" in keys else "",
        violates=_invariants(keys["violates"]) if "violates" in keys else (),
        cure=_cure(keys["cure"]),
        tolerates=_invariants(keys["tolerates"]) if "tolerates" in keys else (),
        live=keys["live"].flag() if "live" in keys else False,
        self_check=keys["self_check"].flag() if "self_check" in keys else False,
        seed=keys["seed"].whole() if "seed" in keys else 1,
        time_scale=keys["time_scale"].whole(1) if "time_scale" in keys else 4,
    )


def _texts(item: Item | None) -> tuple[str, ...]:
    """A text or a list of texts."""
    if item is None:
        return ()
    return tuple(one.text() for one in (item.items() if item.is_list else [item]))


def _invariants(item: Item) -> tuple[str, ...]:
    for name in _texts(item):
        if name not in invariants():
            item.fail(f"there is no invariant {name}; {instead_of(name, invariants())}")
    return _texts(item)


def _cure(item: Item) -> Cure:
    keys = item.mapping(_CURES)
    switches = [
        f"{name}={'on' if value.text().lower() in ('true', 'on') else 'off'}"
        for name, value in (keys["guards"].mapping() if "guards" in keys else {}).items()
    ]
    config = keys["config"].mapping() if "config" in keys else {}
    chosen = VersionOptions(
        profile=keys["profile"].text() if "profile" in keys else "",
        guards=tuple(switches),
        propagation=keys["propagation"].text() if "propagation" in keys else "",
    )
    sets = tuple(f"{name}={value.text()}" for name, value in config.items())
    if not sets and chosen == VersionOptions():
        item.fail("guards, config, profile or propagation: what keeps it from happening")
    return Cure(chosen, sets, keys["because"].text() if "because" in keys else "")
