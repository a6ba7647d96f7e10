"""`isr replay RUN`: play a run or a schedule again, and compare the events."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    JsonOption,
    announcement,
    interrupt_on_signals,
    play_or_explain,
    print_json,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.schedules import replay_schedule
from emulator.cli.parts.trace_difference import difference_json, difference_lines
from emulator.runs.replay import (
    ReplayResult,
    RunManifest,
    about_run,
    other_versions,
    play_again,
    request_of,
)
from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.search.schedules.schedule import SUFFIXES

NAMES = ("recorded", "replayed")
SAME, DIFFERS = 0, 1


def command(
    run: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help=f"{RUN_HELP} Or a schedule of isr explore.")
    ],
    width: Annotated[
        int | None, typer.Option(help="Columns of the lanes; default: the width of the terminal.")
    ] = None,
    stops: Annotated[
        bool,
        typer.Option(
            "--break", help="For a schedule: stop at the violation in the debugger (pdb)."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Play a run or a schedule again, and compare every event.

    A run uses the scenario, settings and seed in its directory. In virtual time every event must be
    the same; otherwise the first difference is shown. A live run never repeats exactly. For a
    schedule every choice is repeated, and the lanes mark the violation.

    \b
      isr replay latest

    Exit codes: 0 the same; 1 different.
    """
    if Path(run).suffix in SUFFIXES:
        raise typer.Exit(replay_schedule(Path(run), width, stops=stops, as_json=as_json))
    directory = find_run(run)
    about = about_run(directory)
    scratch = Path(mkdtemp(prefix="isr-replay-"))
    keep = False
    try:
        request = request_of(directory, about, scratch)
        headline = announcement(
            about.scenario, about.seed, about.zookeeper, request.scenario.duration_us
        )
        typer.echo(headline, err=as_json)
        with interrupt_on_signals(), ProgressLine(total=request.scenario.duration_us) as line:
            again = play_or_explain(lambda: play_again(directory, request, line.show_run))
        keep = again.compared.difference is not None
        if as_json:
            # `other_versions`: versions (of the emulator, Python ...) that differ from the recorded
            # ones.
            print_json(
                {
                    "run_directory": str(directory),
                    "scenario": about.scenario,
                    "seed": about.seed,
                    **difference_json(again.compared, NAMES),
                    "broken_off": again.cut_short,
                    "other_versions": other_versions(about),
                    "replayed": str(again.directory) if keep else None,
                }
            )
        else:
            _report(directory, about, again)
    finally:
        if not keep:
            shutil.rmtree(scratch, ignore_errors=True)
    raise typer.Exit(DIFFERS if keep else SAME)


def _report(directory: Path, about: RunManifest, again: ReplayResult) -> None:
    compared = again.compared
    if compared.difference is None:
        whole = (
            "up to the point where the recorded run was interrupted"
            if again.cut_short
            else "all of them"
        )
        typer.echo(f"the same: {compared.events:,} events, {whole}")
    for text in difference_lines(compared, NAMES):
        typer.echo(text)
    for name, (then, now) in other_versions(about).items():
        typer.echo(f"different {name}: recorded with {then}, replayed with {now}")
    if compared.difference is not None:
        typer.echo(f"recorded  {directory}\nreplayed  {again.directory}")
