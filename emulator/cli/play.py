"""`isr play SCENARIO`: the same cluster by hand."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    GuardOption,
    ProfileOption,
    PropagationOption,
    ScenarioArgument,
    Seed,
    Sets,
    chosen_version,
    print_json,
    report_console,
    seed_of,
)
from emulator.cli.parts.play_session import PlaySession
from emulator.runs.by_hand import ManualRun
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.scenario.settings import overrides

EPILOG = """\b
  pause 2, resume 2, crash 1, start 1, terminate 1    a broker (or: pause zookeeper)
  cut 1 3, cut 1 zookeeper, delay 1 3 50              a link
  heal, heal 2, heal 1 zookeeper                      what was done and still stands
  produce orders-0 5, produce orders rate=20          records
  create_topic clicks 1,2 2,3                         any action of a scenario, by its name
  run 3s, step                                        time goes on; to the next thing shown
  describe, why, why orders-0@v1, show                what there is, and why
  undo, save FILE, help, quit
"""
OPTIONS = {"epilog": EPILOG}


def command(
    scenario: ScenarioArgument,
    sets: Sets = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    seed: Seed = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where it is saved; default: SCENARIO-by-hand.yaml here."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="At the end, what was played as one JSON object.")
    ] = False,
) -> None:
    """Play a scenario's cluster by hand, in virtual time.

    Its topics and workload are there; what the scenario does to its cluster is left out: that is
    yours to do. Commands are typed at a prompt, or read from standard input, one a line; what
    happens grows above it as lanes. What was typed is saved as a scenario that isr run plays, line
    by line; undo takes the last one back. Exit code 64 where standard input has a line that cannot
    be done.
    """
    chosen = chosen_version(profile, guard, propagation)
    loaded = load(shipped.find(scenario), sets or (), chosen)
    number = seed_of(seed)
    console = report_console(as_json=as_json)
    console.print(f"seed {number:#x}   {loaded.name} by hand, virtual time; help, quit")
    file = save or free_name(loaded.name)
    hand = ManualRun(loaded, number)
    session = PlaySession(console, hand, loaded, file, overrides(tuple(sets or ())))
    try:
        if sys.stdin.isatty():
            session.converse()
        else:
            session.follow(sys.stdin)
    finally:
        session.leave(shlex.join(["isr", "run", str(file), "--seed", f"{number:#x}"]))
        hand.close()
        if as_json:
            print_json(session.as_json())


def free_name(scenario: str) -> Path:
    """A file that is not there yet."""
    stem = f"{scenario.removesuffix('-by-hand')}-by-hand"
    names = (f"{stem}.yaml" if n == 1 else f"{stem}-{n}.yaml" for n in range(1, 1000))
    for name in names:
        if not Path(name).exists():
            return Path(name)
    raise UserError(f"--save: {stem}.yaml and all of its numbers are taken")
