"""`isr check RUN`: the invariants over a stored trace."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from emulator.cli.parts.options import JsonOption, RunArgument, print_json
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
            help="Also check that the cluster converged by the end of the run.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every invariant against a run's trace, no matter what produced it or how it ended.

    A violation names the invariant, the two events that contradict each other, and the causes of
    the later one. If a run was interrupted, the events up to that point are checked, and
    convergence is unknown.

    \b
      isr check latest

    Exit codes: 0 every invariant held; 1 one was violated; 2 unknown: no events to check.
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
        # `whole`: not interrupted; `invariants`: those that were checked; `violations` as in
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
                row = Table.grid(padding=(0, 2))
                row.add_row(Text("held    ", "green"), Text(name, no_wrap=True))
                row.add_row("", Text(" ".join(sentence.split()), "dim"))
                console.print(row)
        cut = "" if whole else ", interrupted: checked up to the last event"
        console.print(f"events    {len(events):,}{cut}")
        console.print(Text.assemble("verdict   ", (verdict, "bold")))
    raise typer.Exit(EXIT_CODES[verdict])
