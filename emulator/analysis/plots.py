"""Pictures of an analysis: small multiples, the same for the report (SVG) and as PNG.

Draws the distribution of each figure over the runs (one small histogram per group, on a common
axis), the percentiles of each segment of the propagation by group, and the lengths of
stale-metadata intervals. Everything comes from the tables; only the bins are computed here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from emulator.analysis.tables import GROUP, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = (
    ("stale_metadata_ms_max", "longest stale metadata, ms"),
    ("propagation_ms_max", "slowest propagation, ms"),
    ("isr_changes", "ISR changes"),
    ("under_min_isr_ms", "below min ISR, ms"),
    ("refused", "records refused"),
    ("conflicts", "CAS conflicts"),
)
GROUPS_MAX = 12
BINS = 30
_COLOURS = {"zk": "#2b6cb0", "rpc": "#c05621"}
_SHADES = ("#bcd4ea", "#6fa3d3", "#2b6cb0", "#173f66")
_INK = "#222222"


def preload() -> None:
    """Import the plotting library ahead of time: it takes half a second."""
    import matplotlib as mpl

    mpl.use("agg")
    import_module("matplotlib.pyplot")


def label(group: Sequence[str]) -> str:
    """A short label of a group; the setting, which usually differs, comes last."""
    scenario, profile, propagation, setting = group
    return f"{scenario}, {profile} ({propagation}){f', {setting}' if setting else ''}"


def figures(runs: Sequence[Row], tables: dict[str, pa.Table]) -> Iterator[tuple[str, Figure]]:
    """The pictures by name; empty ones are left out."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams.update(
        {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "isr", "axes.edgecolor": "#999999"}
    )
    groups: Groups = {}
    for run in runs:
        if run["figures"]:
            figures_ = {one["name"]: one["value"] for one in run["figures"]}
            groups.setdefault(tuple(run[name] for name in GROUP), []).append(figures_)
    by_group = dict(sorted(groups.items())[:GROUPS_MAX])
    values: dict[str, set[float]] = {name: set() for name, _ in FIGURES}
    for of_run in (one for of_group in by_group.values() for one in of_group):
        for name in values.keys() & of_run.keys():
            values[name].add(of_run[name])
    varying = [(name, text) for name, text in FIGURES if len(values[name]) > 1]
    if varying:
        yield "distributions", _distributions(by_group, varying)
    for name, value in (("propagation_delay", "leg"), ("partition_health", "condition")):
        if tables[name].num_rows:
            yield name, _bars(tables[name].to_pylist(), value, name)
    if tables["stale_metadata"].num_rows:
        yield "stale_metadata", _bars(tables["stale_metadata"].to_pylist(), "", "stale_metadata")


def as_svg(figure: Figure) -> str:
    """The SVG element for embedding in a page, without the XML prologue."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def as_png(figure: Figure, file: Path) -> None:
    """Write a PNG, for documents and chats."""
    figure.savefig(file, dpi=120, bbox_inches="tight", facecolor="white")


Groups = dict[tuple[str, ...], list[dict[str, float]]]


def _distributions(by_group: Groups, columns: Sequence[tuple[str, str]]) -> Figure:
    """A row per group, a column per figure. A column shares one axis, so that groups compare."""
    import matplotlib.pyplot as plt

    size = (2.4 * len(columns) + 0.5, 1.0 * len(by_group) + 0.8)
    figure, axes = plt.subplots(
        len(by_group), len(columns), figsize=size, sharex="col", squeeze=False
    )
    for row, (group, of_runs) in zip(axes, by_group.items(), strict=True):
        row[0].set_title(label(group), loc="left", fontsize=8, color=_INK)
        for axis, (name, _) in zip(row, columns, strict=True):
            every = [v[name] for of in by_group.values() for v in of if name in v]
            mine = [values[name] for values in of_runs if name in values]
            span = (min(every), max(every))
            axis.hist(mine, bins=BINS, range=span, color=_COLOURS.get(group[2], "#555555"))
            _plain(axis)
    for axis, (_, title) in zip(axes[-1], columns, strict=True):
        axis.set_xlabel(title)
    figure.tight_layout()
    plt.close(figure)
    return figure


def _bars(rows: list[Row], by: str, name: str) -> Figure:
    """A panel per value of `by`, each with p50, p95, p99 and max (or seconds) per group."""
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(row[by] for row in rows)) if by else [name.replace("_", " ")]
    groups = sorted({tuple(row[key] for key in GROUP) for row in rows})[:GROUPS_MAX]
    size = (3.0 * len(panels) + 2.5, 0.35 * len(groups) + 1.2)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        of_group = {tuple(r[k] for k in GROUP): r for r in rows if not by or r[by] == panel}
        for place, group in enumerate(groups):
            row = of_group.get(group, {})
            if "seconds" in row:
                axis.barh(place, row["seconds"], color=_SHADES[2], height=0.6)
            elif row:  # the longest bar first: shorter ones are drawn over it
                for part, shade in zip(("max", "p99", "p95", "p50"), _SHADES, strict=True):
                    axis.barh(place, row[part], color=shade, height=0.6)
        axis.set_title(panel, fontsize=8, color=_INK)
        axis.set_yticks(range(len(groups)), [label(group) for group in groups])
        axis.set_xlabel("total seconds" if "seconds" in rows[0] else "ms: p50, p95, p99, max")
        axis.set_xlim(0, None if axis.dataLim.x1 > 0 else 1)
        _plain(axis, counts=False)
    axes[0][0].invert_yaxis()
    figure.tight_layout()
    plt.close(figure)
    return figure


def _plain(axis: Axes, *, counts: bool = True) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=7, length=2)
    if counts:
        axis.locator_params(axis="y", nbins=3, integer=True)
        axis.locator_params(axis="x", nbins=4)
