"""The page of a report on a cluster: diagnoses, what is stuck, stale metadata, time line, lanes.

Owns the layout; lanes are those of every page (`html`). It receives texts, and must not know how
they were derived.
"""

from __future__ import annotations

import msgspec

from emulator.view.html import panel, render_page
from emulator.view.stored import StoredRun


class Diagnosis(msgspec.Struct, frozen=True):
    """A hazard whose pattern matched."""

    name: str
    when: str
    seen: str
    cure: str


class Section(msgspec.Struct, frozen=True):
    """A table of findings; `nothing`: the text if it has no rows."""

    title: str
    nothing: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


class ReportPage(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page. `about`: its sources, and what is therefore unknown; `facts`: the
    text beside the title, if not a run's own."""

    title: str
    facts: list[str]
    about: list[str]
    diagnoses: list[Diagnosis]
    sections: list[Section]


def render_report(page: ReportPage, run: StoredRun) -> str:
    words = msgspec.structs.asdict(page)
    drawn = panel(run.header, run.events, words.pop("facts"))
    return render_page("report.html.j2", [drawn], **words)
