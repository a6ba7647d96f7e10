"""`isr soak`: real clients and random faults for half an hour, judged by the clients' history."""

from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from emulator.cli.parts.options import (
    AsJson,
    GuardOption,
    PropagationOption,
    Seed,
    announcement,
    check_playable,
    chosen_version,
    interrupt_on_signals,
    play_or_explain,
    print_json,
    read_seed,
    report_console,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.run_report import EXIT_CODES
from emulator.cli.parts.target import CONTAINERS, EMBEDDED, PROCESSES
from emulator.runs.session import Request
from emulator.scenario.actions.disk import DiskFault
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.version import read_version
from emulator.scenario.written import parameters
from emulator.search.soak.schedule import LEAST_S, NAME, draw_schedule, supported_faults
from emulator.search.soak.soak import SoakResult, faults_before, soak
from emulator.view.event_text import counted
from emulator.worlds.processes.small_disk import can_mount
from emulator.worlds.real_kafka.release import find_release

FINDINGS_SHOWN, FAULTS_SHOWN = 8, 6
NO_JAVA = "none"


def command(
    minutes: Annotated[
        float, typer.Option(metavar="M", help="How long; the last two minutes are without faults.")
    ] = 30,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Kafka version (isr profiles).")
    ] = "2.6",
    upgrade: Annotated[
        str | None,
        typer.Option(
            "--upgrade", metavar="NAME", help="Brokers go over to this version, one by one."
        ),
    ] = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Draw this fault alone; may be repeated."),
    ] = None,
    machines_crash: Annotated[
        bool,
        typer.Option(
            "--machines-crash",
            help="A killed broker loses what it has not synced; brokers sync each record.",
        ),
    ] = False,
    target: Annotated[
        str,
        typer.Option(
            metavar=f"{PROCESSES}|{CONTAINERS}",
            help="Where brokers run. In containers no disk is full, no clock jumps, and"
            " descriptors last.",
        ),
    ] = PROCESSES,
    java: Annotated[
        str,
        typer.Option(metavar="VERSION", help=f"Release of the Java client, or {NO_JAVA}."),
    ] = "2.6.3",
    seed: Seed = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the run to DIR/soak/TIME-SEED.")
    ] = Path("runs"),
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress line.")] = False,
) -> None:
    """Run real clients against three brokers while faults strike, and judge what they saw.

    confluent-kafka and the Java client produce with idempotence and acks=all (min.insync.replicas
    2), and read everything again and again. Faults are drawn from the seed: kills, pauses, cut and
    slow links, full disks, no descriptors, jumping clocks, ZooKeeper gone, and situations of
    several faults. The history of the clients is judged by a checker of its own: lost, duplicated,
    moved, reordered, read and later gone, gaps, never sent. The run directory is like any other,
    with history.ndjson beside.

    \b
      isr soak --minutes 5 --seed 7
      isr soak --profile 2.6 --upgrade 2.7
      isr soak --target containers

    Exit codes: 0 the history holds; 1 it does not; 2 unknown: interrupted, not everything was
    read, or the trace violates an invariant and no known hazard explains it.
    """
    number, seconds = read_seed(seed), round(minutes * 60)
    if seconds < LEAST_S:
        raise UserError(f"--minutes {minutes:g}: at least {LEAST_S / 60:g}, to have any faults")
    chosen = chosen_version(profile, guard, propagation)
    if upgrade is not None:
        read_version({}, chosen_version(upgrade, guard, None))
    read_version({}, chosen)
    console = report_console(as_json=as_json)
    if target not in (PROCESSES, CONTAINERS):
        raise UserError(f"--target {target}: {PROCESSES} or {CONTAINERS}")
    if machines_crash and target == CONTAINERS:
        raise UserError(f"--machines-crash: not with --target {CONTAINERS}, whose files stay")
    kinds = supported_faults(target)
    for name in fault or ():
        if name not in kinds:
            raise UserError(f"--fault {name}: not one of {', '.join(kinds)}")
    kinds = {name: kind for name, kind in kinds.items() if not fault or name in fault}
    with TemporaryDirectory() as scratch:
        if DiskFault in kinds.values() and not can_mount(Path(scratch)):
            kinds = {name: kind for name, kind in kinds.items() if kind is not DiskFault}
            console.print("no full disks: that needs the right to mount a file system (root)")
    if not kinds:
        raise UserError("--fault disk: needs the right to mount a file system (root)")
    text = draw_schedule(
        number, seconds, profile, upgrade or "", kinds, machines_crash=machines_crash
    )
    scenario = loads(text, NAME, f"soak-{number:#x}.yaml", chosen=chosen)
    check_playable(scenario, EMBEDDED, 1, target)
    console.print(announcement(NAME, number, EMBEDDED, scenario.duration_us))
    words = ["--minutes", f"{minutes:g}", *chosen.words(), "--seed", f"{number:#x}"]
    words += ["--upgrade", upgrade] if upgrade else []
    for name in fault or ():
        words += ["--fault", name]
    words += ["--machines-crash"] if machines_crash else []
    words += ["--target", target] if target != PROCESSES else []
    words += ["--java", java] if java != "2.6.3" else []
    words += ["--out", str(out)] if out != Path("runs") else []
    repeat = shlex.join(["isr", "soak", *words])
    request = Request(
        scenario=scenario,
        seed=number,
        zookeeper=EMBEDDED,
        target=target,
        repeat=repeat,
        base=out,
    )
    class_path = None if java == NO_JAVA else find_release(java, None).class_path
    with interrupt_on_signals(), ProgressLine(total=scenario.duration_us, shown=not quiet) as line:
        result = play_or_explain(lambda: soak(request, class_path, line.show_run))
    _report(console, result, scenario)
    console.print(f"repeat it      {escape(repeat)}", soft_wrap=True)
    if as_json:
        print_json(result)
    raise typer.Exit(EXIT_CODES[result.verdict])


def _report(console: Console, result: SoakResult, scenario: LoadedScenario) -> None:
    history = result.history
    console.print(
        f"history        {history.sent:,} sent, {history.acknowledged:,} acknowledged,"
        f" {history.failed:,} failed, {history.unresolved:,} without an answer;"
        f" {history.read:,} read"
        + (f"; {history.sent_again} sent again by their client" if history.sent_again else "")
    )
    faults = ", ".join(f"{name} {count}" for name, count in result.faults.items())
    console.print(f"faults         {faults or 'none'}")
    hazards = [one for one in result.violations if one.hazard]
    names = sorted({str(one.hazard) for one in hazards})
    console.print(
        f"trace          {result.events:,} events;"
        f" {counted(len(result.violations) - len(hazards), 'violation')} without a known hazard"
        + (f"; {', '.join(names)}" if names else "")
    )
    for one in result.violations:
        if not one.hazard:
            console.print(Text(f"BROKEN         {one.invariant}: {one.text}"), soft_wrap=True)
    for finding in history.findings[:FINDINGS_SHOWN]:
        text = f"{finding.kind.upper():14} {finding.partition}: {finding.text}"
        console.print(Text(text, "bold red"), soft_wrap=True)
        steps = faults_before(finding, scenario)
        when = f"between {finding.from_us / 1e6:.1f} s and {finding.to_us / 1e6:.1f} s"
        around = ", ".join(
            f"{step.action.name} {' '.join(map(str, parameters(step.action).values()))}"
            f" at {step.at_us / 1e6:.1f} s"
            for step in steps[-FAULTS_SHOWN:]
        )
        console.print(Text(f"               {when}; {around or 'no fault'}", "dim"), soft_wrap=True)
    if len(history.findings) > FINDINGS_SHOWN:
        counts = ", ".join(f"{kind} {count}" for kind, count in history.counts.items())
        console.print(f"               {len(history.findings)} in all: {counts}")
    for problem in result.problems:
        console.print(Text(f"               {problem}"), soft_wrap=True)
    console.print(Text.assemble("verdict        ", (result.verdict, "bold")))
    console.print(f"run directory  {escape(result.run_directory)}", soft_wrap=True)
