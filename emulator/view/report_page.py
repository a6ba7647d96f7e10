"""The page of a report on a cluster: diagnoses, what is stuck, stale metadata, time line, lanes.

Owns what stands where; lanes are those of every page (`html`). It gets what was found in words
already, and must not know how it was found.
"""

from __future__ import annotations

import msgspec

from emulator.view.html import panel, render_page
from emulator.view.stored import StoredRun


class Diagnosis(msgspec.Struct, frozen=True):
    """A hazard whose pattern was seen."""

    name: str
    when: str
    seen: str
    cure: str


class Section(msgspec.Struct, frozen=True):
    """A table of what was found; `nothing`: what stands there when it has no rows."""

    title: str
    nothing: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


class ReportPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page says. `about`: where it comes from, and what is therefore not known; `facts`:
    what stands beside the title, if not a run's own."""

    title: str
    facts: list[str]
    about: list[str]
    diagnoses: list[Diagnosis]
    sections: list[Section]


def render_report(page: ReportPage, run: StoredRun) -> str:
    """The whole page."""
    words = msgspec.structs.asdict(page)
    drawn = panel(run.header, run.events, words.pop("facts"))
    return render_page("report.html.j2", [drawn], **words)
