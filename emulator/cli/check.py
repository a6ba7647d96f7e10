"""`isr check RUN`: the invariants over a stored trace."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from emulator.cli.parts.run_report import print_violations
from emulator.invariants.base import Invariant, check, invariants
from emulator.runs.broken import Broken, explain
from emulator.runs.run_directory import RUN_HELP, find_run
from emulator.scenario.errors import UserError
from emulator.view.stored import NoRun, StoredRun, open_run

HELD, BROKEN, UNKNOWN = 0, 1, 2


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    converged: Annotated[
        bool,
        typer.Option(
            "--converged",
            help="Also what must have come about by the end: the cluster was healed, left alone.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Hold every invariant against the trace of a run, whoever wrote it and however it ended.

    A violation names the invariant, the two events that contradict each other, and the chain of
    causes that led to the later one. Of a run that was killed what it wrote until then is judged;
    whether it would have converged is unknown then. Exit code 0: all held; 1: one did not; 2:
    unknown, for there is nothing to judge.
    """
    try:
        stored = open_run(find_run(run))
    except NoRun as error:
        raise UserError(str(error)) from None
    whole = bool(stored.summary) and not stored.summary.get("interrupted", False)
    liveness = converged and whole
    events = stored.events
    found = [explain(one, events) for one in check(events, liveness=liveness)]
    judged = [name for name, kind in invariants().items() if liveness or not kind.liveness]
    unknown = not events or (converged and not whole)
    verdict = "not held" if found else "unknown" if unknown else "held"
    if as_json:
        told = _json(stored, judged, found, verdict, whole=whole)
        typer.echo(msgspec.json.encode(told))
    else:
        _print(stored, judged, found, verdict, whole=whole)
    raise typer.Exit({"held": HELD, "not held": BROKEN, "unknown": UNKNOWN}[verdict])


def _json(
    stored: StoredRun, judged: list[str], found: list[Broken], verdict: str, *, whole: bool
) -> dict[str, object]:
    """`run_directory`, `scenario`, `seed`, `events`, `whole` (not broken off), `verdict`,
    `invariants` (those that were judged), `violations` as in summary.json."""
    return {
        "run_directory": str(stored.directory),
        "scenario": stored.header.scenario,
        "seed": stored.header.seed,
        "events": len(stored.events),
        "whole": whole,
        "verdict": verdict,
        "invariants": judged,
        "violations": found,
    }


def _print(
    stored: StoredRun, judged: list[str], found: list[Broken], verdict: str, *, whole: bool
) -> None:
    console = Console(highlight=False)
    if found:
        print_violations(console, found, stored.events)
    broken = {one.invariant for one in found}
    kinds: dict[str, type[Invariant]] = invariants()
    for name in judged:
        if name not in broken:
            sentence = (kinds[name].__doc__ or "").split("\n\n")[0]
            console.print(Text.assemble(("held    ", "green"), f"  {name}  ", (sentence, "dim")))
    cut = "" if whole else ", broken off: what it wrote until then"
    console.print(f"events    {len(stored.events):,}{cut}")
    console.print(Text.assemble("verdict   ", (verdict, "bold")))
