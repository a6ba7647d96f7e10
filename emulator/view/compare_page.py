"""The page of a comparison: distributions, figures, and both first plays on one axis of time.

Owns the page's content, and the drawing of cumulative distributions (with a logarithmic time axis,
because the two sides differ by powers of ten). `html` draws lanes, staleness and faults, as for
every page. Samples and texts come from the caller; this module must not know how they were
measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

import msgspec

from emulator.trace.percentiles import nearest_rank
from emulator.view.html import facts_of, panel, render_page
from emulator.view.stored import StoredRun

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 190, 40, 408, 10, 166
LEAST_MS = 0.1
"""Shorter samples are drawn here, because a logarithmic axis has no zero."""
MARKED = (50, 95, 99)

Curves = Mapping[str, Sequence[float]]
"""The sorted samples of each side, in milliseconds."""


class Table(msgspec.Struct, frozen=True):
    """A table of texts."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page. `distributions`: titles, with both sides' samples."""

    title: str
    about: str
    names: tuple[str, ...]
    distributions: dict[str, Curves]
    times: Table
    counts: Table
    troubles: list[str]
    repeat: str


def render_comparison(page: Page, runs: Mapping[str, StoredRun]) -> str:
    """The complete page; `runs` are kept plays by the names of their sides."""
    panels = [
        panel(run.header, run.events, [name, *facts_of(run.header)]) for name, run in runs.items()
    ]
    plots = [_plot(title, curves) for title, curves in page.distributions.items()]
    return render_page("compare.html.j2", panels, plots=plots, **msgspec.structs.asdict(page))


def _plot(title: str, curves: Curves) -> dict[str, object]:
    """One distribution of both sides."""
    every = [max(ms, LEAST_MS) for side in curves.values() for ms in side]
    low = floor(log10(min(every, default=1)))
    high = max(ceil(log10(max(every, default=10))), low + 1)
    scale = _Scale(low, high)
    return {
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "ticks": [scale.tick(power) for power in range(low, high + 1)],
        "shares": [{"y": scale.y(s / 100), "text": f"{s} %"} for s in (0, 50, 100)],
        "curves": [
            {
                "name": name,
                "place": place,
                "count": len(side),
                "path": scale.path(side),
                "dots": [scale.dot(side, percent) for percent in MARKED],
            }
            for place, (name, side) in enumerate(curves.items())
            if side
        ],
    }


class _Scale:
    """Converts milliseconds and shares to coordinates of the drawing."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high, self._width = low, high, (RIGHT - LEFT) / (high - low)

    def x(self, ms: float) -> float:
        return round(LEFT + (log10(max(ms, LEAST_MS)) - self._low) * self._width, 1)

    def y(self, share: float) -> float:
        return round(BOTTOM - share * (BOTTOM - TOP), 1)

    def tick(self, power: int) -> dict[str, object]:
        """A power of ten with its unit; the last label ends at the edge."""
        text = f"{10.0**power:g} ms" if power < 3 else f"{10 ** (power - 3):,} s"
        anchor = "end" if power == self._high else "middle"
        return {"x": self.x(10.0**power), "text": text, "anchor": anchor}

    def path(self, ordered: Sequence[float]) -> str:
        """A step for each sample; samples at the same place share one step."""
        steps, place = [f"M{LEFT} {BOTTOM}"], None
        for number, ms in enumerate(ordered, 1):
            at, up = self.x(ms), self.y(number / len(ordered))
            steps.append(f"V{up}" if at == place else f"H{at}V{up}")
            place = at
        return "".join([*steps, f"H{RIGHT}"])

    def dot(self, ordered: Sequence[float], percent: int) -> dict[str, object]:
        ms = nearest_rank(ordered, percent)
        return {"x": self.x(ms), "y": self.y(percent / 100), "text": f"p{percent}: {ms:,g} ms"}
