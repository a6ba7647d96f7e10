"""What came of the shipped scenarios on real Kafka, as a section of docs/fidelity.md.

Owns the section, and where it stands in the page. It must not know how anything was played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

import msgspec

from tests.unit.forensics.strangers import Stranger

WIDTH = 120
HEADING = "## Shipped scenarios, recorded by `isr record`"


class Delay(msgspec.Struct, frozen=True):
    """One delay in milliseconds: recorded, live (the median of the live plays, None: none has it),
    and the least, the median and the longest in virtual time."""

    what: str
    recorded_ms: int
    live_ms: int | None
    min_ms: int | None
    p50_ms: int | None
    max_ms: int | None
    inside: bool


class Held(msgspec.Struct, frozen=True):
    """One scenario on one version of Kafka. `equal`: seeds that are equal in a point as a whole.
    `load`: of the machine before it was recorded (below 0: not known)."""

    scenario: str
    kafka: str
    load: float
    seeds: int
    agreeing: int
    matched: bool
    recorded: int
    recorded_and_matched: int
    equal: dict[str, int]
    missed: list[str]
    live_plays: int
    live_points: list[str]
    stranger: Stranger
    delays: list[Delay]


class Without(msgspec.Struct, frozen=True):
    """A scenario that is not there, and why it cannot be recorded (it can: not yet)."""

    scenario: str
    kafka: str
    why: str


def with_section(page: str, held: Sequence[Held], others: Sequence[Without]) -> str:
    """The page with this section as it is now: always the last."""
    before = page.partition(HEADING)[0].rstrip("\n")
    return before + "\n\n" + "\n".join(_section(held, others)) + "\n"


def section_of(page: str) -> str:
    """What stands there, for whoever writes the rest of the page anew."""
    _, heading, rest = page.partition(HEADING)
    return f"\n{heading}{rest}" if heading else ""


def _section(held: Sequence[Held], others: Sequence[Without]) -> Iterator[str]:
    yield HEADING
    yield ""
    yield from wrap(
        "Made by `make fidelity-kafka`: recordings by `isr record` on unmodified Kafka (of "
        "several the newest that is matched is shown), blind seeds of ours in virtual time, "
        "how many of them are equal in each of the seven points as a whole, plays of ours on "
        "a real ZooKeeper server (*live*: the points in which one of them is equal as a "
        "whole). *Shift*: the recording's logs given to `isr import` as a stranger's, broker "
        "1's clock 1,700 ms ahead, one file gzipped, one rotated, one missing: how far ahead "
        "it was found, with ZooKeeper's log and without; **bold** where the ISR history was "
        "another than the transaction log's. Load: of the machine, two cores, when the "
        "recording began.",
        WIDTH,
    )
    for version in sorted({one.kafka for one in held}):
        yield from _version(version, [one for one in held if one.kafka == version])
        yield from _missing([one for one in others if one.kafka == version])
    for one in held:
        yield from _delays(one)


def _version(version: str, held: Sequence[Held]) -> Iterator[str]:
    matched = sum(one.matched for one in held)
    yield from ("", f"### On {version}: {matched} of {len(held)} matched", "")
    yield (
        "| scenario | blind seeds that agree | equal in point 1, 2, … 7 | matched | live: equal"
        " points | shift, ms | load |"
    )
    yield "|---|--:|---|---|---|--:|--:|"
    for one in sorted(held, key=lambda it: it.scenario):
        seeds = f"{one.agreeing} of {one.seeds}"
        shift = _shift(one.stranger)
        points = ", ".join(str(one.equal[str(point)]) for point in range(1, 8) if one.equal) or "–"
        load = f"{one.load:.0f}" if one.load >= 0 else "–"
        cells = (one.scenario, seeds, points, _how(one), _live(one), shift, load)
        yield f"| {' | '.join(cells)} |"


def _missing(others: Sequence[Without]) -> Iterator[str]:
    refused = [f"{one.scenario} ({one.why})" for one in others if one.why]
    recordable = [one.scenario for one in others if not one.why]
    for what, names in (
        ("Cannot be given to a real cluster", refused),
        ("Not recorded", recordable),
    ):
        if names:
            yield from ("", *wrap(f"{what}: {', '.join(names)}.", WIDTH, break_on_hyphens=False))


def _how(one: Held) -> str:
    if one.matched:
        few = one.recorded_and_matched < one.recorded
        return f"{one.recorded_and_matched} of {one.recorded} recordings" if few else "yes"
    outside = [it.what for it in one.delays if not it.inside]
    why = [f"point {', '.join(one.missed)}"] if one.missed else []
    why += [f"{len(outside)} of {len(one.delays)} delays, as {outside[0]}"] if outside else []
    return f"**no**: {'; '.join(why) or 'no seed agrees'}"


def _live(one: Held) -> str:
    return f"{', '.join(one.live_points)} ({one.live_plays})" if one.live_plays else "–"


def _shift(one: Stranger) -> str:
    found = (one.found_ms, one.same), (one.found_without_ms, one.same_without)
    return " / ".join(f"{ms:,}" if same else f"**{ms:,}**" for ms, same in found)


def _delays(one: Held) -> Iterator[str]:
    if not one.delays:
        return
    yield from ("", f"#### {one.scenario} on {one.kafka}", "")
    yield "| delay, ms | recorded | live | virtual: min | median | max |"
    yield "|---|--:|--:|--:|--:|--:|"
    for it in one.delays:
        figures = (it.recorded_ms, it.live_ms, it.min_ms, it.p50_ms, it.max_ms)
        shown = " | ".join("–" if ms is None else str(ms) for ms in figures)
        yield f"| {it.what} | {shown}{'' if it.inside else ' **outside**'} |"
