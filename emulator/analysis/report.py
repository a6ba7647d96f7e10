"""Renders an analysis as one self-contained page, with its pictures also as PNG.

Owns the page's contents and their order: outcomes by setting, the ZooKeeper path beside the RPC
path, distributions, each table, and its runs with the command that replays each. `report.html.j2`,
`report.css` and `report.js` define its look. The page stays small: it lists at most RUNS_MAX runs
and says how many it leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2
import msgspec
import pyarrow as pa

from emulator.analysis import plots
from emulator.analysis.aggregations import aggregations
from emulator.analysis.analyse import Analysis
from emulator.analysis.dataset import Problem
from emulator.analysis.tables import GROUP, Row

REPORT = "report.html"
RUNS_MAX = 20_000
ROWS_MAX = 400
ABBREVIATED = ("cas", "hw", "isr")
OUTCOMES = (
    "isr_changes",
    "notifications_per_change",
    "conflicts",
    "stale_metadata_ms_max",
    "propagation_ms_p50",
    "propagation_ms_max",
    "under_min_isr_ms",
    "acknowledged",
    "refused",
    "lost",
    "leader_elections",
    "sessions_expired",
)


def write_report(
    analysis: Analysis, out: Path, title: str, problems: Sequence[Problem] = ()
) -> Path:
    """Write the page and the pictures to `out`; return the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = list(plots.figures(analysis.runs, analysis.tables))
    for name, figure in drawn:
        plots.as_png(figure, out / f"{name}.png")
    page = render(analysis, title, problems, {name: plots.as_svg(f) for name, f in drawn})
    aside = out / f".{REPORT}.part"
    aside.write_text(page, encoding="utf-8")
    return aside.replace(out / REPORT)


def render(
    analysis: Analysis, title: str, problems: Sequence[Problem], pictures: dict[str, str]
) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("emulator.analysis", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["heading"] = _heading
    groups = sorted({_group(run) for run in analysis.runs})
    return environment.get_template("report.html.j2").render(
        title=title,
        runs=len(analysis.runs),
        events=analysis.events,
        groups=[plots.label(group) for group in groups],
        outcomes=_outcomes(analysis.tables["outcomes"]),
        paths=_paths(analysis.tables["propagation_delay"]),
        pictures=pictures,
        tables=[_table(name, table, groups) for name, table in analysis.tables.items()],
        problems=[str(problem) for problem in problems],
        data=_script_json(_runs(analysis.runs, groups)),
        left_out=max(0, len(analysis.runs) - RUNS_MAX),
    )


def _group(row: Row) -> tuple[str, ...]:
    return tuple(row[name] or "" for name in GROUP)


def _table(name: str, table: pa.Table, groups: list[tuple[str, ...]]) -> Row:
    """A table for the page. `group` is the index of the group whose runs a row summarizes."""
    rows = table.to_pylist()
    about = aggregations()[name].about if name in aggregations() else ""
    columns = [column for column in table.column_names if column not in GROUP]
    place = {group: number for number, group in enumerate(groups)}
    shown = [
        {
            "group": place.get(_group(row), -1),
            "label": plots.label(_group(row)),
            "cells": [(column, row[column]) for column in columns],
        }
        for row in rows[:ROWS_MAX]
    ]
    more = max(0, len(rows) - ROWS_MAX)
    return {"name": name, "about": about, "columns": columns, "rows": shown, "more": more}


def _outcomes(table: pa.Table) -> Row:
    """Outcomes by setting: a row per group; a column per verdict (number of runs) and per figure
    (mean over the runs)."""
    by_group: dict[tuple[str, ...], Row] = {}
    for row in table.to_pylist():
        by_group.setdefault(_group(row), {})[row["figure"]] = row
    verdicts = sorted({f for of in by_group.values() for f in of if f.startswith("verdict: ")})
    figures = [f for f in OUTCOMES if any(f in of for of in by_group.values())]
    rows = []
    for group, of in sorted(by_group.items()):
        counts = [of[v]["runs"] if v in of else 0 for v in verdicts]
        means = [of[f]["mean"] if f in of else None for f in figures]
        rows.append({"label": plots.label(group), "cells": [*counts, *means]})
    names = [v.removeprefix("verdict: ") for v in verdicts]
    return {"columns": [*names, *figures], "rows": rows}


def _paths(table: pa.Table) -> Row:
    """The paths of ISR changes side by side: a row per segment, a column per group."""
    rows = table.to_pylist()
    groups = sorted({_group(row) for row in rows})
    of = {(_group(row), row["leg"]): row for row in rows}
    segments = list(dict.fromkeys(row["leg"] for row in rows))
    cells = [
        {"segment": segment, "cells": [of.get((group, segment)) for group in groups]}
        for segment in sorted(segments)
    ]
    return {"groups": [plots.label(group) for group in groups], "segments": cells}


def _runs(runs: Sequence[Row], groups: list[tuple[str, ...]]) -> Row:
    """[group, run, seed, verdict, violations, longest stale metadata]. A group's command has
    `{seed}` in place of a run's seed."""
    place = {group: number for number, group in enumerate(groups)}
    commands: list[str] = [""] * len(groups)
    listed: list[list[object]] = []
    for run in runs[:RUNS_MAX]:
        number = place[_group(run)]
        seed = run["seed"] or ""
        command = (run["replay"] or "").replace(seed, "{seed}") if seed else ""
        commands[number] = commands[number] or command
        own = [] if command == commands[number] else [run["replay"]]
        values = {one["name"]: one["value"] for one in run["figures"] or ()}
        stale, broken = values.get("stale_metadata_ms_max"), len(run["violations"] or ())
        listed.append([number, run["run"], seed, run["verdict"], broken, stale, *own])
    labels = [plots.label(group) for group in groups]
    return {"groups": labels, "commands": commands, "runs": listed}


def _script_json(data: Row) -> str:
    """JSON for a script element; escaped, so that it cannot contain `</script>`."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _heading(name: str) -> str:
    """The heading of a table or a picture."""
    return " ".join(word.upper() if word in ABBREVIATED else word for word in name.split("_"))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
