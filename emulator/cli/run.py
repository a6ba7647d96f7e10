"""`isr run SCENARIO`: play a scenario, live or in virtual time, and report the result."""

from __future__ import annotations

import shlex
import textwrap
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
    command_words,
    interrupt_on_signals,
    play_or_explain,
    print_json,
    read_seed,
    report_console,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.run_check import check
from emulator.cli.parts.run_report import EXIT_CODES, report
from emulator.cli.parts.target import (
    EMBEDDED,
    LIVE,
    PROCESSES,
    SIMULATED,
    Processes,
    TargetOption,
    chosen_target,
    read_kafka_logs,
    target_words,
)
from emulator.cli.parts.zookeeper_wait import wait_for_server
from emulator.runs.session import Request, play_run
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from zk.real.server import JavaNotFound


def _epilog() -> str:
    """The shortest shipped scenario with a fault, in full, within 80 columns."""
    texts = {path: path.read_text(encoding="utf-8") for path in shipped.shipped().values()}
    texts = {path: text for path, text in texts.items() if "\nfaults:" in text}
    if not texts:
        return ""
    path = min(texts, key=lambda path: len(texts[path]))
    # Only the folded text of `about` is longer, and wrapping does not change it.
    lines = [
        part
        for line in texts[path].splitlines()
        for part in textwrap.wrap(line, 76, subsequent_indent="  ", break_on_hyphens=False) or [""]
    ]
    blocks = "\n".join(f"  {line}" if line else "" for line in lines)
    shown = "\n\n".join(f"\b\n{block}" for block in blocks.split("\n\n"))
    return f"A scenario in full ({path.name}):\n\n{shown}"


OPTIONS = {"epilog": _epilog()}
Twice = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Virtual time: run twice with different hash seeds and check that the traces are"
        " identical.",
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
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/SCENARIO/TIME-SEED.")
    ] = Path("runs"),
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress line, no lanes and no figures.")
    ] = False,
    twice: Twice = False,
    target: TargetOption = None,
    processes: Processes = False,
    parquet: Parquet = None,
) -> None:
    """Play a scenario and report the result: lanes, figures, expectations.

    \b
      isr run brief-lag --zookeeper simulated

    Exit codes: 0 all expectations held; 1 one did not, an invariant was violated, or the runs of
    --check differ; 2 unknown: an expectation was never tested, or a live run was too late.
    """
    where, zookeeper = chosen_target(target, zookeeper or SIMULATED * twice, processes=processes)
    chosen = chosen_version(profile, guard, propagation)
    loaded = load(shipped.find(scenario), sets or (), chosen)
    if loaded.hosts and target is None and where == LIVE and zookeeper == EMBEDDED:
        where = PROCESSES
    check_playable(loaded, zookeeper, time_scale, where)
    if twice and parquet is not None:
        raise UserError("--check keeps only one of its two runs: leave out --parquet")
    if twice and zookeeper != SIMULATED:
        raise UserError(f"--check works only in virtual time: --zookeeper {SIMULATED}")
    number = read_seed(seed)
    console = report_console(as_json=as_json)
    if not quiet:
        console.print(announcement(loaded.name, number, zookeeper, loaded.duration_us))
    words = [*command_words(scenario, number, zookeeper, time_scale, sets or []), *chosen.words()]
    to = ["--out", str(out)] if out != Path("runs") else []
    repeat = shlex.join(["isr", "run", *words, *target_words(where), *to, *["--check"] * twice])
    if twice:
        with interrupt_on_signals():
            checked = check(words, number, out, shown=not quiet)
        checked.report(console, repeat, as_json=as_json, quiet=quiet)
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
        read_kafka=read_kafka_logs(loaded),
    )
    if parquet is not None:
        from emulator.analysis.sweep.recording import recorder

        request = msgspec.structs.replace(request, dataset=recorder(parquet, request))
    wait_for_server(zookeeper)
    with interrupt_on_signals(), ProgressLine(total=loaded.duration_us, shown=not quiet) as line:
        try:
            performed = play_or_explain(lambda: play_run(request, line.show_run))
        except JavaNotFound as error:
            hint = f"--target {SIMULATED} plays in virtual time, without Java"
            raise UserError(f"{error}; {hint}") from None
    report(console, performed, repeat, quiet=quiet)
    if as_json:
        print_json(performed.summary)
    raise typer.Exit(EXIT_CODES[performed.summary.verdict])
