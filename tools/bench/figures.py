"""A measured figure with its scope, and how figures are shown: a table, or JSON.

A figure without its scope (how many brokers, partitions, requests in flight) says nothing. Where
two things are compared, both were measured in the same run, and the ratio is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emulator.trace.percentiles import nearest_rank


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """`value` in `unit`; `of` is what it was held against and `least` the least ratio wanted (or
    `most` the greatest value); None where nothing is wanted."""

    what: str
    value: float
    unit: str
    scope: str
    reference: str = msgspec.field(name="against", default="")
    of: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.of if self.of else None

    @property
    def ok(self) -> bool:
        """What was wanted of it, if anything."""
        if self.least is not None and (self.ratio is None or self.ratio < self.least):
            return False
        return self.most is None or self.value <= self.most

    def as_json(self) -> dict[str, object]:
        return {**msgspec.to_builtins(self), "ratio": self.ratio, "ok": self.ok}


def median(values: Iterable[float]) -> float:
    """As every percentile of the house: by nearest rank."""
    return nearest_rank(sorted(values), 50)


def show(figures: Iterable[Figure]) -> None:
    """On standard output, wide enough to be read."""
    table = Table(box=None, padding=(0, 2, 1, 0), header_style="bold")
    table.add_column("what", ratio=3)
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("scope", ratio=5)
    for one in figures:
        if one.ratio is None:
            ratio = "" if one.ok else "too much"
        else:
            ratio = f"{one.ratio:,.0f}" if one.ratio >= 100 else f"{one.ratio:.2g}"
            ratio += "" if one.least is None else f" (≥ {one.least:g})"
        scope = one.scope + (f"; against {one.reference}: {_short(one.of)}" if one.of else "")
        shown = Text(ratio, "" if one.ok else "bold red")
        table.add_row(one.what, f"{_short(one.value)} {one.unit}", shown, scope)
    Console(width=130, highlight=False).print(table)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
