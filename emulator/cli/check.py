"""`isr check RUN`: the invariants over a stored trace."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from emulator.cli.parts.options import OneObject, RunArgument, print_json
from emulator.cli.parts.run_report import EXIT_CODES, print_violations
from emulator.invariants.base import check, invariants
from emulator.runs.broken import explain
from emulator.runs.run_directory import find_run
from emulator.view.stored import open_run


def command(
    run: RunArgument,
    converged: Annotated[
        bool,
        typer.Option(
            "--converged",
            help="Also what must have come about by the end: the cluster was healed, left alone.",
        ),
    ] = False,
    as_json: OneObject = False,
) -> None:
    """Hold every invariant against the trace of a run, whoever wrote it and however it ended.

    A violation names the invariant, the two events that contradict each other, and the chain of
    causes that led to the later one. Of a run that was killed what it wrote until then is judged;
    whether it would have converged is unknown then. Exit code 0: all held; 1: one did not; 2:
    unknown, for there is nothing to judge.
    """
    stored = open_run(find_run(run))
    whole = bool(stored.summary) and not stored.summary.get("interrupted", False)
    liveness = converged and whole
    events = stored.events
    violations = [explain(one, events) for one in check(events, liveness=liveness)]
    judged = {name: kind for name, kind in invariants().items() if liveness or not kind.liveness}
    unknown = not events or (converged and not whole)
    verdict = "not held" if violations else "unknown" if unknown else "held"
    if as_json:
        # `whole`: not broken off; `invariants`: those that were judged; `violations` as in
        # summary.json.
        print_json(
            {
                "run_directory": str(stored.directory),
                "scenario": stored.header.scenario,
                "seed": stored.header.seed,
                "events": len(events),
                "whole": whole,
                "verdict": verdict,
                "invariants": list(judged),
                "violations": violations,
            }
        )
    else:
        console = Console(highlight=False)
        if violations:
            print_violations(console, violations, events)
        broken = {one.invariant for one in violations}
        for name, kind in judged.items():
            if name not in broken:
                sentence = (kind.__doc__ or "").split("\n\n")[0]
                line = Text.assemble(("held    ", "green"), f"  {name}  ", (sentence, "dim"))
                console.print(line)
        cut = "" if whole else ", broken off: what it wrote until then"
        console.print(f"events    {len(events):,}{cut}")
        console.print(Text.assemble("verdict   ", (verdict, "bold")))
    raise typer.Exit(EXIT_CODES[verdict])
