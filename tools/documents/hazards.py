"""`docs/hazards.md`, made from the catalogue and from the results of its last plays.

    python -m tools.documents.hazards > docs/hazards.md

Owns the frame around the rows. A test holds the document to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.hazards.entry import Entry, catalogue
from emulator.hazards.state import Seen, seen

HEAD = """\
# Hazards

Failures of Kafka's ZooKeeper-era design, reproduced on demand (`emulator/hazards/catalogue`, one
file each). `isr hazards NAME` plays one twice: without its cure, until an invariant breaks, and
with its cure, where nothing may break. `--live` does so on a real ZooKeeper server, with real
sessions. A file is a scenario with a section `hazard`; `isr run FILE`, `isr play FILE` and
`isr show` accept it like any other.

*Steps* are the actions of the schedule. *Entries* are the lines of its workload and faults, each
with its healing; the hazard disappears if any one of them is removed. *Shortest* is the number of
entries in the shortest schedule that shows the hazard, searched breadth first among the subsets of
the written entries (…: not all were tried).

`make hazards` plays all hazards and writes this page; `ARGS=--shortest` also repeats the searches.
`make hazards ARGS=--live` also plays the hazards that a real server can show, each side up to three
times until it is as expected. The number of plays is shown if it took more than one per side. The
three most famous hazards have a page of their own: [hazards-told.md](hazards-told.md).

| hazard | versions | result | steps | entries | shortest | cure | live | plays | commit |
|---|---|---|--:|--:|--:|---|---|--:|---|
"""

STORIES = "\n## What happens\n"


def document() -> str:
    """The whole document."""
    rows = [_row(entry, seen().get(entry.name)) for entry in catalogue().values()]
    return "\n".join([HEAD + "\n".join(rows), STORIES, *_stories()])


def _row(entry: Entry, one: Seen | None) -> str:
    fixed = f", fixed in {entry.fixed}" if entry.fixed else ", never fixed"
    cells = [
        f"`isr hazards {entry.name}`",
        entry.versions + fixed,
        "not played" if one is None else _result(one),
        *(("", "", "") if one is None else _lengths(one)),
        f"`{' '.join(entry.cure.words)}`" + ("" if one is None or one.cured else " does NOT hold"),
        _live(entry, one),
        "" if one is None else f"{one.wall_ms / 1000:.1f} s",
        "" if one is None else one.commit,
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _lengths(one: Seen) -> tuple[str, str, str]:
    needless = f" ({one.needless} needless)" * bool(one.needless)
    return f"{one.steps}", f"{one.entries}{needless}", one.shortest.words


def _result(one: Seen) -> str:
    return one.message if one.reproduced else f"NOT reproduced: {one.message}"


def _live(entry: Entry, one: Seen | None) -> str:
    if not entry.live:
        return ""
    if one is None or one.live is None:
        return "can be"
    seen_there = "seen" if one.live.seen else "NOT seen"
    more = f", {one.live.plays} plays" if one.live.plays > 2 else ""
    return f"{seen_there} ({one.live.commit}{more})"


def _stories() -> Iterator[str]:
    for entry in catalogue().values():
        tickets = ", ".join([entry.name, *entry.also])
        facts = f" ({entry.facts})" if entry.facts else ""
        yield f"### {entry.name}: {entry.title}\n\n{tickets}{facts}. {entry.story}"
        if entry.cure.explanation:
            yield f"\n{entry.cure.explanation}"
        yield ""


if __name__ == "__main__":
    print(document(), end="")
