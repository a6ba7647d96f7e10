"""`isr compare SCENARIO`: the same scenario through two versions, or both propagation paths."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer

from emulator.cli.parts.compare_report import page_of, report
from emulator.cli.parts.compare_sides import ComparisonOptions, SideOptions
from emulator.cli.parts.options import (
    FirstSeed,
    ScenarioArgument,
    TimeScale,
    interrupt_on_signals,
    print_json,
    read_seed,
    report_console,
)
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.target import SIMULATED
from emulator.cli.parts.zookeeper_wait import wait_for_server
from emulator.runs.comparison import SAMPLES, Compared, Measured, curve, figures
from emulator.runs.run_directory import make_directory, pretty
from emulator.runs.side_by_side import Keep, Plays, play_sides
from emulator.scenario.errors import UserError
from emulator.view.compare_page import render_comparison
from emulator.view.stored import open_run

PLAYED, BROKEN, UNKNOWN = 0, 1, 2
SEEDS = 20
CORES = os.cpu_count() or 1
FILE, PAGE = "compare.json", "compare.html"


Profile = Annotated[
    str | None, typer.Option(metavar="PROFILE", help="Kafka version of this side (isr profiles).")
]
Sets = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Kafka setting of this side.")
]
Guards = Annotated[
    list[str] | None, typer.Option(metavar="NAME=off|on", help="Guard of this side.")
]
OwnPath = Annotated[str | None, typer.Option(metavar="zk|rpc", help="Propagation of this side.")]
SetsOfBoth = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Kafka setting of both sides; may be repeated."
    ),
]
GuardsOfBoth = Annotated[
    list[str] | None,
    typer.Option("--guard", metavar="NAME=off|on", help="Guard of both sides; may be repeated."),
]
PathOfBoth = Annotated[
    str | None, typer.Option(metavar="zk|rpc", help="Propagation of both sides.")
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Add every trace to this data set (isr analyze)."),
]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help=f"Runs of each side; default: {SEEDS}, live 1."),
]
Jobs = Annotated[
    int, typer.Option(min=1, metavar="K", help="Parallel processes; default: one per core.")
]
ZooKeeper = Annotated[
    str,
    typer.Option(
        metavar="simulated|embedded|HOST:PORT[,HOST:PORT...][/chroot]",
        help="Virtual time, or a live server (one run after the other).",
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Write to DIR/SCENARIO-compare/TIME-SEED.")]


def command(
    scenario: ScenarioArgument,
    a: Profile = None,
    b: Profile = None,
    profile: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="Kafka version of both sides.")
    ] = None,
    sets: SetsOfBoth = None,
    guards: GuardsOfBoth = None,
    propagation: PathOfBoth = None,
    set_a: Sets = None,
    set_b: Sets = None,
    guard_a: Guards = None,
    guard_b: Guards = None,
    propagation_a: OwnPath = None,
    propagation_b: OwnPath = None,
    seeds: Seeds = None,
    jobs: Jobs = CORES,
    seed: FirstSeed = None,
    zookeeper: ZooKeeper = SIMULATED,
    time_scale: TimeScale = 1,
    out: Out = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print compare.json; everything else goes to stderr.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    parquet: Parquet = None,
) -> None:
    """Play a scenario in two variants with the same seeds and faults, and compare the results.

    Without --a and --b the two propagation paths are compared: ISR writes by the leader (zk) and
    AlterIsr (rpc), in a version that supports both. The command writes compare.json and
    compare.html, and keeps the first run of each side.

    \b
      isr compare brief-lag --a 2.4 --b 2.6 --seeds 4

    Exit codes: 0 done; 1 an invariant was violated and no known hazard explains it; 2 interrupted,
    or a live run was too late to tell.
    """
    first, number = read_seed(seed), seeds or (SEEDS if zookeeper == SIMULATED else 1)
    common, began = (
        ComparisonOptions(scenario, first, zookeeper, time_scale, out),
        datetime.now(UTC),
    )
    both = SideOptions(profile or "", propagation or "", tuple(sets or ()), tuple(guards or ()))
    own = (
        SideOptions.of_side(a, propagation_a, set_a, guard_a, both=both),
        SideOptions.of_side(b, propagation_b, set_b, guard_b, both=both),
    )
    sides = common.sides(own, both)
    console = report_console(as_json=as_json)
    console.print(common.announced(sides, number), soft_wrap=True)
    record: Keep | None = None
    if parquet is not None:
        from emulator.analysis.sweep.recording import keep_side

        record = partial(keep_side, parquet, f"{began:%Y%m%dT%H%M%S}")
    plays = common.plays(sides, number, jobs, record)
    wait_for_server(zookeeper)
    played = _play(plays, shown=not quiet)
    option_values: dict[str, object] = {"--profile": profile, "--set": sets, "--guard": guards}
    option_values |= {"--propagation": propagation, "--a": a, "--b": b}
    option_values |= {
        "--set-a": set_a,
        "--set-b": set_b,
        "--guard-a": guard_a,
        "--guard-b": guard_b,
    }
    option_values |= {"--propagation-a": propagation_a, "--propagation-b": propagation_b}
    compared = played.compared(common.repeat({**option_values, "--seeds": seeds}))
    directory = make_directory(out, f"{compared.scenario}-compare", first, began)
    curves = [{of: curve(side.values(), of) for of in SAMPLES} for side in played.measured]
    # The page has the lanes of each side with a kept play.
    stored = {
        name: open_run(played.directories[side])
        for side, name in enumerate(compared.paths)
        if side in played.directories
    }
    page = render_comparison(page_of(compared, curves), stored)
    try:
        (directory / FILE).write_bytes(pretty(msgspec.to_builtins(compared)))
        (directory / PAGE).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from None
    report(console, compared, directory)
    if as_json:
        print_json(compared)
    if any(side.broken_invariants for side in compared.paths.values()):
        raise typer.Exit(BROKEN)
    late = any(side.runs_too_late for side in compared.paths.values())
    raise typer.Exit(UNKNOWN if late or compared.broken_off else PLAYED)


class _Played(NamedTuple):
    """The finished plays: the measurements of each side by seed, and the directory of its first
    play."""

    plays: Plays
    measured: tuple[dict[int, Measured], dict[int, Measured]]
    directories: dict[int, Path]
    broken_off: bool

    def compared(self, repeat: str) -> Compared:
        """The figures of the seeds that both sides have played."""
        plays = self.plays
        both = [seed for seed in plays.seeds if all(seed in side for side in self.measured)]
        sides = [[of[seed] for seed in both] for of in self.measured]
        paths = {
            variant.name: figures(variant, runs, self.directories.get(place))
            for place, (variant, runs) in enumerate(zip(plays.sides, sides, strict=True))
        }
        return Compared(
            scenario=plays.sides[0].scenario.name,
            first_seed=plays.seeds[0],
            seeds=len(both),
            zookeeper=plays.zookeeper,
            time_scale=plays.time_scale,
            paths=paths,
            broken_off=self.broken_off,
            repeat=repeat,
        )


def _play(plays: Plays, *, shown: bool) -> _Played:
    """Play everything, or until the user interrupts it."""
    played = _Played(plays, ({}, {}), {}, False)
    names = tuple(side.name for side in plays.sides)
    number, done = len(names) * len(plays.seeds), 0
    try:
        with interrupt_on_signals(), ProgressLine(total=number, shown=shown) as line:

            def on_progress(side: int, now_us: int) -> None:
                where = f", {names[side]} at {now_us / 1e6:.1f} s"
                line.update(f"{done} of {number} plays{where}", done)

            for one in play_sides(plays, on_progress):
                if one.is_interrupted:
                    raise KeyboardInterrupt
                played.measured[one.side][one.measured.seed] = one.measured
                if one.directory is not None:
                    played.directories[one.side] = one.directory
                done += 1
                line.update(f"{done} of {number} plays", done)
    except KeyboardInterrupt:
        return played._replace(broken_off=True)
    return played
