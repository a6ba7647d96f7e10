"""docs/fidelity.md, README's table and the plots of delays, made from docs/fidelity/*.csv.

    python -m tools.fidelity.page

`make fidelity` and `make fidelity-kafka` end with it. A test holds the page to the files.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from emulator.conformance.distance import NEAR_ENOUGH
from emulator.kafka.profiles.guards.base import number
from tools.fidelity.results import (
    FOLDER,
    MIXES,
    DelayRow,
    DistanceRow,
    Measured,
    MixedResult,
    NotRecorded,
    RecordingResult,
    ShippedResult,
    random_set,
    read_rows,
    seed_of,
)
from tools.pages.pictures import INK, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parents[2]
README_TABLE = re.compile(r"(?<=<!-- recordings -->\n).*?(?=<!-- end -->)", re.DOTALL)


def markdown(folder: Path = FOLDER) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    recordings = read_rows("recordings", RecordingResult, folder)
    delays = read_rows("delays", DelayRow, folder)
    shipped = read_rows("shipped", ShippedResult, folder)
    measured = read_rows("measured", Measured, folder)
    random = read_rows("random", RecordingResult, folder)
    versions = read_rows("versions", RecordingResult, folder)
    mixed = read_rows("mixed", MixedResult, folder)
    return environment.get_template("fidelity.md.j2").render(
        measured=measured[0] if measured else None,
        summary=summary(recordings),
        recordings=[row for row in recordings if not row.run],
        repeats=[row for row in recordings if row.run],
        distances=read_rows("distances", DistanceRow, folder),
        near_enough=NEAR_ENOUGH,
        delays=len(delays),
        outside=sum(not row.inside for row in delays),
        random_sets=random_sets(random, folder),
        random_distances=read_rows("random-distances", DistanceRow, folder),
        mixed=mixed,
        mixes=[str(mix) for mix in MIXES],
        mixed_table=mixed_table(mixed),
        shipped=shipped,
        shipped_versions=sorted({row.kafka for row in shipped}),
        not_recorded=read_rows("not-recorded", NotRecorded, folder),
        versions=version_table(versions),
        versions_lines=version_lines(versions),
        versions_missed=[row for row in versions if not row.is_matched],
    )


def random_sets(
    rows: list[RecordingResult], folder: Path = FOLDER
) -> list[tuple[str, Measured | None, list[RecordingResult]]]:
    """The random scripts that are looked at, and those that are kept apart; with how each set was
    measured."""
    titles = {
        "random": "Looked at",
        "kept-apart": "Kept apart",
        "judged-before": "Kept apart before",
    }
    sets: dict[str, list[RecordingResult]] = {name: [] for name in titles}
    for row in rows:
        sets[random_set(seed_of(row.recording))].append(row)
    out = []
    for name, of_set in sets.items():
        measured = read_rows(f"{name}-measured", Measured, folder)
        out.append((titles[name], measured[0] if measured else None, of_set))
    return [one for one in out if one[2]]


def mixed_table(rows: list[MixedResult]) -> list[tuple[str, str, str, list[str]]]:
    """Per version, propagation and story the number of criteria that hold in all runs of each
    mix."""
    by_place = {row.place: row for row in rows}

    def cell(row: MixedResult | None) -> str:
        return "–" if row is None else str(row.equal.split(", ").count(str(row.runs)))

    stories = sorted({row.place[:-1] for row in rows})
    return [
        (*story, [cell(by_place.get((*story, str(mix)))) for mix in MIXES]) for story in stories
    ]


def version_lines(rows: list[RecordingResult]) -> list[str]:
    """Oldest first."""
    return sorted({row.kafka for row in rows}, key=number)


def version_table(rows: list[RecordingResult]) -> list[tuple[str, list[str]]]:
    """Per story its cells, one for each version line."""
    by_place = {(row.recording, row.kafka): row for row in rows}

    def cell(row: RecordingResult | None) -> str:
        if row is None:
            return "–"
        how = "**yes**" if row.by_seeds else "**by a search**" if row.by_search else "no"
        return f"{how}, {row.agreeing} of {row.seeds}"

    def total(kafka: str) -> str:
        of_version = [row for row in rows if row.kafka == kafka]
        return f"{sum(row.is_matched for row in of_version)} of {len(of_version)}"

    lines = version_lines(rows)
    stories = sorted({row.recording for row in rows})
    cells = [(story, [cell(by_place.get((story, kafka))) for kafka in lines]) for story in stories]
    return [*cells, ("matched", [total(kafka) for kafka in lines])]


def summary(recordings: list[RecordingResult]) -> list[tuple[str, int, int, int, int]]:
    """Per version: recordings, matched by random seeds, only by a search, not at all."""
    counts: dict[str, Counter[str]] = {}
    for row in recordings:
        if not row.run:
            how = "seeds" if row.by_seeds else "search" if row.by_search else "not"
            counts.setdefault(row.kafka, Counter()).update((how, "all"))
    return [
        (kafka, count["all"], count["seeds"], count["search"], count["not"])
        for kafka, count in sorted(counts.items())
    ]


def readme_table(recordings: list[RecordingResult]) -> str:
    lines = [
        "| Kafka | recordings | matched by random seeds | matched by a search | not matched |",
        "|---|--:|--:|--:|--:|",
    ]
    for kafka, *counts in summary(recordings):
        cells = " | ".join(str(count or "–") for count in counts)
        lines.append(f"| {kafka} | {cells} |")
    return "\n".join(lines) + "\n"


def draw_delays(drawing: Axes, delays: list[DelayRow]) -> None:
    """Every delay: recorded across, the emulator's range upwards. On the diagonal they agree."""
    for is_inside, color in ((True, "#2f81f7"), (False, "#db6d28")):
        rows = [row for row in delays if row.inside is is_inside and row.median_ms is not None]
        across = [max(row.recorded_ms, 1) for row in rows]
        medians = [max(row.median_ms or 0, 1) for row in rows]
        below = [m - min(max(row.min_ms or 0, 1), m) for m, row in zip(medians, rows, strict=True)]
        above = [max(row.max_ms or 0, m) - m for m, row in zip(medians, rows, strict=True)]
        drawing.errorbar(
            across,
            medians,
            yerr=(below, above),
            fmt="o",
            markersize=2.5,
            linewidth=0.4,
            color=color,
            alpha=0.6,
            rasterized=True,  # thousands of strokes: as shapes they would make a megabyte
            label=f"{'inside' if is_inside else 'outside'} the emulator's range: {len(rows)}",
        )
    limits = (1, 100_000)
    drawing.plot(limits, limits, color="#848d97", linewidth=0.8)
    drawing.set(
        xscale="log",
        yscale="log",
        xlim=limits,
        ylim=limits,
        xlabel="recorded, ms",
        ylabel="emulated, ms (median, least to most)",
    )
    drawing.legend(loc="upper left", frameon=False)


def write_page() -> None:
    recordings = read_rows("recordings", RecordingResult)
    (ROOT / "docs" / "fidelity.md").write_text(markdown(), encoding="utf-8")
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(README_TABLE.sub(readme_table(recordings), text), encoding="utf-8")
    delays = read_rows("delays", DelayRow)
    for theme in INK:
        with axes(ROOT / "docs" / "pictures" / f"delays-{theme}.svg", theme, 4.2) as drawing:
            draw_delays(drawing, delays)


if __name__ == "__main__":
    write_page()
