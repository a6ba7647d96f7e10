"""`isr analyze DATASET`: tables and a report of many runs."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from emulator.analysis.analyse import Analysis
    from emulator.analysis.dataset import Dataset

OUT = "analysis"
SparkMaster = Annotated[
    str,
    typer.Option(
        "--spark-master", metavar="MASTER", help="local[N], spark://HOST:PORT, yarn, k8s://..."
    ),
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option("--spark-conf", metavar="KEY=VALUE", help="A Spark setting; may be repeated."),
]


def command(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="Data set of isr sweep or --parquet.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Output directory; default: DATASET/analysis."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Also write the tables as CSV.")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and list unreadable files.")
    ] = False,
    master: SparkMaster = "local[*]",
    conf: SparkConf = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Update the tables while runs are added, until Ctrl-C.")
    ] = False,
    keep_classes: Annotated[
        bool,
        typer.Option(
            "--keep-classes", help="Keep Java's class archive, so that later starts are faster."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the tables as one JSON object (--follow: one line per update)."
        ),
    ] = False,
) -> None:
    """Compute the tables of a data set with Spark and write an HTML report.

    Writes report.html (it needs no network), its pictures as PNG, tables/NAME.parquet and, with
    --csv, csv/NAME.csv.

    \b
      isr sweep brief-lag --out data --seeds 20
      isr analyze data
    """
    from emulator.analysis import session
    from emulator.analysis.dataset import open_dataset
    from emulator.analysis.pipeline import analyse_and_report
    from emulator.cli.parts.options import interrupt_on_signals, print_json
    from emulator.cli.parts.progress import ProgressLine
    from emulator.view.event_text import counted

    into, settings = out or dataset / OUT, settings_of(conf)
    session.check_master(master)
    if follow:
        _follow(dataset, into, master, settings, skip_bad=skip_bad, as_json=as_json)
        return
    began_s = time.monotonic()
    with interrupt_on_signals(), ProgressLine() as line:

        def on_open(opened: Dataset) -> None:
            files = len(opened.events) + len(opened.runs)
            line.step(f"{counted(opened.rows, 'row')} in {counted(files, 'file')}")

        def on_table(name: str, done: int, of: int) -> None:
            line.step(f"{done} of {of} tables: {name}")

        left, made, page = analyse_and_report(
            dataset,
            into,
            partial(open_dataset, dataset, skip_bad=skip_bad),
            lambda chosen: session.start(master, {**chosen, **settings}, remember=keep_classes),
            local=session.is_local(master),
            csv=csv,
            on_open=on_open,
            on_table=on_table,
        )
    took_s = time.monotonic() - began_s
    for problem in left.problems:
        print(f"left out: {problem}", file=sys.stderr)
    if as_json:
        print_json(
            {
                "rows": left.rows,
                "runs": len(made.runs),
                "left_out": _left_out(left),
                "seconds": round(took_s, 3),
                "report": str(page),
                "tables": {name: table.to_pylist() for name, table in made.tables.items()},
            }
        )
        return
    typer.echo(f"{len(made.runs):,} runs, {left.rows:,} rows in {took_s:.1f} s")
    typer.echo(f"tables         {into / 'tables'}")
    typer.echo(f"report         {page}")


def _follow(
    dataset: Path, into: Path, master: str, conf: dict[str, str], *, skip_bad: bool, as_json: bool
) -> None:
    """Update the tables until Ctrl-C, the normal end."""
    from emulator.analysis import session
    from emulator.analysis.errors import AnalysisError
    from emulator.analysis.follow import LiveAnalysis
    from emulator.cli.parts.options import interrupt_on_signals, print_json

    if not dataset.is_dir():
        raise AnalysisError(f"{dataset}: no such directory")
    spark = session.start(master, {**session.sized(0), **conf})
    reported: set[str] = set()

    def on_update(opened: Dataset, made: Analysis) -> None:
        for text in map(str, opened.problems):
            if text not in reported:
                print(f"left out: {text}", file=sys.stderr, flush=True)
                reported.add(text)
        ended = sum(run["verdict"] is not None for run in made.runs)
        if as_json:
            counts = {"rows": opened.rows, "runs": len(made.runs), "over": ended}
            print_json({**counts, "left_out": _left_out(opened)})
        else:
            typer.echo(f"{len(made.runs):,} runs, {ended:,} of them finished")

    live = LiveAnalysis(dataset, into, on_update, skip_bad=skip_bad)
    try:
        query = live.start(spark)
        text = f"following {dataset}; the report is {into / 'report.html'}; Ctrl-C ends it"
        print(text, file=sys.stderr, flush=True)
        with interrupt_on_signals(), suppress(KeyboardInterrupt):
            live.wait(query)
        query.stop()
    finally:
        spark.stop()


def settings_of(conf: list[str] | None) -> dict[str, str]:
    """Parse `--spark-conf KEY=VALUE`."""
    from emulator.scenario.errors import UserError

    settings = {}
    for pair in conf or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith("spark."):
            raise UserError(f"--spark-conf {pair}: write spark.KEY=VALUE")
        settings[key] = value
    return settings


def _left_out(opened: Dataset) -> list[dict[str, str]]:
    return [{"path": str(p.path), "why": p.why} for p in opened.problems]
