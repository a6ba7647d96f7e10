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
    read_seed,
    report_console,
)
from emulator.cli.parts.play_session import PlaySession
from emulator.runs.by_hand import ManualRun
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.scenario.settings import overrides

EPILOG = """Commands at the prompt:

\b
  pause 2, resume 2, crash 1, start 1  a broker (or: pause zookeeper)
  cut 1 3, cut 1 zookeeper             a link; delay 1 3 50 adds 50 ms
  heal, heal 2, heal 1 zookeeper       end the current faults
  produce orders-0 5                   send records (produce orders rate=20)
  create_topic clicks 1,2 2,3          any action of a scenario, by name
  run 3s, step                         let time pass; up to the next event
  describe, show, why, why orders-0@v1 show the state, the lanes, the causes
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
        typer.Option(metavar="FILE", help="Save as this file; default: SCENARIO-by-hand.yaml."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="At the end, print the actions as one JSON object.")
    ] = False,
) -> None:
    """Play a scenario's cluster by hand, in virtual time.

    The cluster has the scenario's topics and workload, but not its faults: you cause them. Commands
    come from a prompt, or one per line from standard input, and the lanes above the prompt grow.
    Your actions are saved as a scenario for isr run; undo takes back the last one.

    \b
      isr play brief-lag
      echo 'pause 2; run 5s; describe' | tr ';' '\\n' | isr play brief-lag

    Exit codes: 0 the session ended; 64 usage error, or a bad line on standard input.
    """
    chosen = chosen_version(profile, guard, propagation)
    loaded = load(shipped.find(scenario), sets or (), chosen)
    number = read_seed(seed)
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
    """The name of a new file."""
    stem = f"{scenario.removesuffix('-by-hand')}-by-hand"
    names = (f"{stem}.yaml" if n == 1 else f"{stem}-{n}.yaml" for n in range(1, 1000))
    for name in names:
        if not Path(name).exists():
            return Path(name)
    raise UserError(f"--save: {stem}.yaml and its numbered names all exist; give another FILE")
