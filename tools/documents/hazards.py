"""`docs/hazards.md`, made from the catalogue and from what was seen when it was last played.

    python -m tools.documents.hazards > docs/hazards.md

Owns the frame around the rows. A test holds the document to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.hazards.entry import Entry, catalogue
from emulator.hazards.state import Seen, seen

HEAD = """\
# Hazards

What the ZooKeeper-era design gets wrong, reproduced on demand (`emulator/hazards/catalogue`, one
file each). `isr hazards NAME` plays one twice: as it was, until an invariant breaks, and with its
cure, where nothing may break; `--live` does so on a real ZooKeeper server, with real sessions. A
file is a scenario with a section `hazard`; `isr run FILE`, `isr play FILE` and `isr show` take it
as any other. *Steps* are the actions of its schedule; *entries* the lines of its workload and
faults, each with what undoes it; left out, each of them alone, it does not happen. *Shortest*:
those of the shortest schedule that shows it, searched breadth first among all that have fewer of
the written entries (…: not all were tried). `make hazards` plays all of them and writes this page
(`ARGS=--shortest`: searches again, where nothing is new, too); `make hazards ARGS=--live` plays
those that a real server can show there too: each side until it is as it should be, three times at
most (how many plays it took is told where it was more than one of each). The three most famous are
told in full in [hazards-told.md](hazards-told.md).

| hazard | versions | what was seen | steps | entries | shortest | cure | live | plays | commit |
|---|---|---|--:|--:|--:|---|---|--:|---|
"""

STORIES = "\n## Their stories\n"


def document() -> str:
    """The whole document."""
    rows = [_row(entry, seen().get(entry.name)) for entry in catalogue().values()]
    return "\n".join([HEAD + "\n".join(rows), STORIES, *_stories()])


def _row(entry: Entry, one: Seen | None) -> str:
    fixed = f", fixed in {entry.fixed}" if entry.fixed else ", never fixed"
    cells = [
        f"`isr hazards {entry.name}`",
        entry.versions + fixed,
        "not tried" if one is None else _message(one),
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


def _message(one: Seen) -> str:
    return one.said if one.reproduced else f"NOT reproduced: {one.said}"


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
        if entry.cure.because:
            yield f"\n{entry.cure.because}"
        yield ""


if __name__ == "__main__":
    print(document(), end="")
