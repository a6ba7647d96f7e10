"""`isr run SCENARIO`: play a scenario, live or in virtual time, and say what came of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from emulator.cli.parts.options import (
    AsJson,
    GuardOption,
    Parquet,
    ProfileOption,
    PropagationOption,
    ScenarioArgument,
    Seed,
    Sets,
    TimeScale,
    ZooKeeper,
    announcement,
    check_playable,
    chosen_version,
    orderly_end,
    performing,
    print_json,
    report_console,
    seed_of,
    words_of,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.run_check import check
from emulator.cli.parts.run_report import EXIT_CODES, report
from emulator.cli.parts.target import (
    SIMULATED,
    Processes,
    TargetOption,
    chosen_target,
    target_words,
)
from emulator.runs.session import Request, play_run
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from zk.real.server import JavaNotFound


def _epilog() -> str:
    """The shortest of the shipped scenarios that has a fault, in full."""
    texts = {path: path.read_text(encoding="utf-8") for path in shipped.shipped().values()}
    texts = {path: text for path, text in texts.items() if "\nfaults:" in text}
    if not texts:
        return ""
    path = min(texts, key=lambda path: len(texts[path]))
    blocks = "\n".join(f"  {line}" if line else "" for line in texts[path].splitlines())
    shown = "\n\n".join(f"\b\n{block}" for block in blocks.split("\n\n"))
    return f"A scenario in full ({path.name}):\n\n{shown}"


OPTIONS = {"epilog": _epilog()}
Twice = Annotated[
    bool,
    typer.Option(
        "--check", help="In virtual time, in two processes that hash differently: the same?"
    ),
]


def command(
    scenario: ScenarioArgument,
    zookeeper: ZooKeeper = None,
    sets: Sets = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    time_scale: TimeScale = 1,
    seed: Seed = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where runs go: DIR/SCENARIO/TIME-SEED.")
    ] = Path("runs"),
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress line, no lane table, no figures.")
    ] = False,
    twice: Twice = False,
    target: TargetOption = None,
    processes: Processes = False,
    parquet: Parquet = None,
) -> None:
    """Play a scenario and say what came of it: lanes, figures, expectations held or not.

    Exit code 0: all expectations held; 1: one did not, or an invariant broke; 2: unknown (it never
    came to what it expects, or a live kernel was too late to tell). With --check 1: they differ.
    """
    where, zookeeper = chosen_target(target, zookeeper or SIMULATED * twice, processes=processes)
    chosen = chosen_version(profile, guard, propagation)
    loaded = load(shipped.find(scenario), sets or (), chosen)
    check_playable(loaded, zookeeper, time_scale, where)
    if twice and parquet is not None:
        raise UserError("--check plays twice and keeps one: --parquet does not go with it")
    if twice and zookeeper != SIMULATED:
        raise UserError(f"--check compares runs in virtual time: --zookeeper {SIMULATED}")
    number = seed_of(seed)
    console = report_console(as_json=as_json)
    if not quiet:
        console.print(announcement(loaded.name, number, zookeeper, loaded.duration_us))
    words = [*words_of(scenario, number, zookeeper, time_scale, sets or []), *chosen.words()]
    to = ["--out", str(out)] if out != Path("runs") else []
    repeat = shlex.join(["isr", "run", *words, *target_words(where), *to, *["--check"] * twice])
    if twice:
        with orderly_end():
            checked = check(words, number, out, shown=not quiet)
        checked.tell(console, repeat, as_json=as_json, quiet=quiet)
        raise typer.Exit(checked.exit_code)
    request = Request(
        scenario=loaded,
        seed=number,
        zookeeper=zookeeper,
        time_scale=time_scale,
        target=where,
        sets=tuple(sets or ()),
        repeat=repeat,
        base=out,
    )
    if parquet is not None:
        from emulator.analysis.sweep.recording import recorder

        request = msgspec.structs.replace(request, dataset=recorder(parquet, request))
    with orderly_end(), ProgressLine(total=loaded.duration_us, shown=not quiet) as line:
        try:
            performed = performing(lambda: play_run(request, line.show_run))
        except JavaNotFound as error:
            hint = f"--target {SIMULATED} plays in virtual time, without Java"
            raise UserError(f"{error}; {hint}") from None
    report(console, performed, repeat, quiet=quiet)
    if as_json:
        print_json(performed.summary)
    raise typer.Exit(EXIT_CODES[performed.summary.verdict])
