"""`isr compare SCENARIO`: the same scenario through two versions, or both propagation paths."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts.compare_report import page_of, report
from emulator.cli.parts.compare_sides import Both, Given, Own
from emulator.cli.parts.options import orderly_end, seed_of, width_of
from emulator.cli.parts.progress import ProgressLine
from emulator.cli.parts.target import SIMULATED
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


Profile = Annotated[str | None, typer.Option(metavar="PROFILE", help="A version (isr profiles).")]
Sets = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Of this side.")]
Guards = Annotated[list[str] | None, typer.Option(metavar="NAME=off|on", help="Of this side.")]
OwnPath = Annotated[str | None, typer.Option(metavar="zk|rpc", help="Of this side.")]
SetsOfBoth = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of both; may be repeated."),
]
GuardsOfBoth = Annotated[
    list[str] | None,
    typer.Option("--guard", metavar="NAME=off|on", help="Of both; may be repeated."),
]
PathOfBoth = Annotated[
    str | None, typer.Option(metavar="zk|rpc", help="Both sides propagate this way.")
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Every play's trace into this data set (isr analyze)."),
]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help=f"How many of each; {SEEDS}, live 1 if not given."),
]
Jobs = Annotated[int, typer.Option(min=1, metavar="K", help="Processes; default: one per core.")]
ZooKeeper = Annotated[
    str,
    typer.Option(
        metavar="simulated|embedded|HOST:PORT[,HOST:PORT...][/chroot]",
        help="Virtual time, or live, one play after the other.",
    ),
]
Out = Annotated[
    Path, typer.Option(metavar="DIR", help="Where it goes: DIR/SCENARIO-compare/TIME-SEED.")
]


def command(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A name (isr scenarios) or a YAML file.")
    ],
    a: Profile = None,
    b: Profile = None,
    profile: Annotated[
        str | None, typer.Option(metavar="PROFILE", help="Both paths of this version.")
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
    seed: Annotated[
        str | None, typer.Option(metavar="S", help="The first seed, decimal or 0x...; else drawn.")
    ] = None,
    zookeeper: ZooKeeper = SIMULATED,
    time_scale: Annotated[
        int, typer.Option(min=1, max=1000, help="Live: divide all times by this.")
    ] = 1,
    out: Out = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="compare.json on standard output, all else on stderr.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    parquet: Parquet = None,
) -> None:
    """Play a scenario through two variants, the same seeds and faults, and say what differs.

    Without --a and --b: both propagation paths, the leader's own writes to ZooKeeper (zk) against
    AlterIsr (rpc), in one version that can do either. Written are compare.json and compare.html, a
    page that needs no network; the first play of each side is kept as a run.

    Exit code 0: played; 1: an invariant broke that no known hazard of Kafka's explains; 2: broken
    off, or a live run was too late to tell.
    """
    first, number = seed_of(seed), seeds or (SEEDS if zookeeper == SIMULATED else 1)
    given, began = Given(scenario, first, zookeeper, time_scale, out), datetime.now(UTC)
    both = Both(profile or "", propagation or "", tuple(sets or ()), tuple(guards or ()))
    own = (
        Own.of(a, propagation_a, set_a, guard_a, both=both),
        Own.of(b, propagation_b, set_b, guard_b, both=both),
    )
    sides = given.sides(own, both)
    console = Console(stderr=as_json, highlight=False, width=width_of(as_json=as_json))
    console.print(given.announced(sides, number), soft_wrap=True)
    plays = given.plays(sides, number, jobs, _keeping(parquet, began))
    seen = _play(plays, shown=not quiet)
    options: dict[str, object] = {"--profile": profile, "--set": sets, "--guard": guards}
    options |= {"--propagation": propagation, "--a": a, "--b": b}
    options |= {"--set-a": set_a, "--set-b": set_b, "--guard-a": guard_a, "--guard-b": guard_b}
    options |= {"--propagation-a": propagation_a, "--propagation-b": propagation_b}
    found = seen.compared(given.repeat({**options, "--seeds": seeds}))
    directory = make_directory(out, f"{found.scenario}-compare", first, began)
    _write(directory, found, seen)
    report(console, found, directory)
    if as_json:
        typer.echo(msgspec.json.encode(found))
    raise typer.Exit(_exit_code(found))


def _keeping(parquet: Path | None, began: datetime) -> Keep | None:
    if parquet is None:
        return None
    from emulator.analysis.sweep.recording import keep_side

    return partial(keep_side, parquet, f"{began:%Y%m%dT%H%M%S}")


# -- plays -----------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """What was played: of each side its measures by seed, and where its first play is kept."""

    plays: Plays
    measured: tuple[dict[int, Measured], dict[int, Measured]]
    kept: dict[int, Path]
    broken_off: bool

    def compared(self, repeat: str) -> Compared:
        """The figures of the seeds that both sides have played."""
        plays = self.plays
        both = [seed for seed in plays.seeds if all(seed in side for side in self.measured)]
        sides = [[of[seed] for seed in both] for of in self.measured]
        paths = {
            variant.name: figures(variant, runs, self.kept.get(place))
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


def _play(plays: Plays, *, shown: bool) -> _Seen:
    """All of it, or until the user ends it."""
    seen = _Seen(plays, ({}, {}), {}, False)
    names = tuple(side.name for side in plays.sides)
    number, done = len(names) * len(plays.seeds), 0
    try:
        with orderly_end(), ProgressLine(total=number, shown=shown) as line:

            def tell(side: int, now_us: int) -> None:
                where = f", {names[side]} at {now_us / 1e6:.1f} s"
                line.update(f"{done} of {number} plays{where}", done)

            for played in play_sides(plays, tell):
                if played.is_interrupted:
                    raise KeyboardInterrupt
                seen.measured[played.side][played.measured.seed] = played.measured
                if played.directory is not None:
                    seen.kept[played.side] = played.directory
                done += 1
                line.update(f"{done} of {number} plays", done)
    except KeyboardInterrupt:
        return seen._replace(broken_off=True)
    return seen


def _write(directory: Path, found: Compared, seen: _Seen) -> None:
    """Both files. The page needs a kept play of each side."""
    curves = [{of: curve(side.values(), of) for of in SAMPLES} for side in seen.measured]
    runs = {name: open_run(seen.kept[i]) for i, name in enumerate(found.paths) if i in seen.kept}
    page = render_comparison(page_of(found, curves), runs)
    try:
        (directory / FILE).write_bytes(pretty(msgspec.to_builtins(found)))
        (directory / PAGE).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from None


def _exit_code(found: Compared) -> int:
    if any(side.broken_invariants for side in found.paths.values()):
        return BROKEN
    late = any(side.runs_too_late for side in found.paths.values())
    return UNKNOWN if late or found.broken_off else PLAYED
