"""`isr compare SCENARIO`: the same scenario through two versions, or both propagation paths."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console

from emulator.cli.compare_progress import PlaysBar
from emulator.cli.compare_report import page_of, report
from emulator.cli.run import (
    SIMULATED,
    announcement,
    check_playable,
    orderly_end,
    seed_of,
    width_of,
    words_of,
)
from emulator.explore.side_by_side import Asked, plays
from emulator.profiles.base import profiles
from emulator.runtime.comparison import SAMPLES, Compared, Measured, Variant, curve, figures
from emulator.runtime.run_directory import make_directory, pretty
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import load
from emulator.scenario.version import Chosen
from emulator.view.compare_page import render_comparison
from emulator.view.stored import open_run

PLAYED, BROKEN, UNKNOWN = 0, 1, 2
SEEDS = 20
BOTH_PATHS = "2.7"
"""The version that plays both ways of propagation, where the scenario's own has only one."""
PATHS = ("zk", "rpc")
CORES = os.cpu_count() or 1
FILE, PAGE = "compare.json", "compare.html"


Profile = Annotated[str | None, typer.Option(metavar="PROFILE", help="A version (isr profiles).")]
Sets = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Of this side.")]
Guards = Annotated[list[str] | None, typer.Option(metavar="NAME=off|on", help="Of this side.")]
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
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of both; may be repeated."),
    ] = None,
    set_a: Sets = None,
    set_b: Sets = None,
    guard_a: Guards = None,
    guard_b: Guards = None,
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
) -> None:
    """Play a scenario through two variants, the same seeds and faults, and say what differs.

    Without --a and --b: both propagation paths, the leader's own writes to ZooKeeper (zk) against
    AlterIsr (rpc), in one version that can do either. Written are compare.json and compare.html, a
    page that needs no network; the first play of each side is kept as a run.

    Exit code 0: played; 1: an invariant broke that no known hazard of Kafka's explains; 2: broken
    off, or a live run was too late to tell.
    """
    first, number = seed_of(seed), seeds or (SEEDS if zookeeper == SIMULATED else 1)
    given = _Given(scenario, first, zookeeper, time_scale, out)
    own = [
        _Own(one, (*(sets or ()), *(of_side or ())), tuple(guards or ()))
        for one, of_side, guards in ((a, set_a, guard_a), (b, set_b, guard_b))
    ]
    sides = given.sides(own, profile)
    console = Console(stderr=as_json, highlight=False, width=width_of(as_json=as_json))
    console.print(given.announced(sides, number))
    seen = _play(given.asked(sides, number, jobs), shown=not quiet)
    options: dict[str, object] = {"--profile": profile, "--set": sets, "--a": a, "--b": b}
    options |= {"--set-a": set_a, "--set-b": set_b, "--guard-a": guard_a, "--guard-b": guard_b}
    found = seen.compared(given.repeat({**options, "--seeds": seeds}))
    directory = make_directory(out, f"{found.scenario}-compare", first, datetime.now(UTC))
    _write(directory, found, seen)
    report(console, found, directory)
    if as_json:
        typer.echo(msgspec.json.encode(found))
    raise typer.Exit(_exit_code(found))


class _Own(NamedTuple):
    """What one side has to itself."""

    profile: str | None
    sets: tuple[str, ...]
    guards: tuple[str, ...]


class _Given(NamedTuple):
    """What both sides have in common."""

    scenario: str
    seed: int
    zookeeper: str
    time_scale: int
    out: Path

    def sides(self, own: Sequence[_Own], both: str | None) -> tuple[Variant, Variant]:
        """Both sides, each known to be playable."""
        versions = self._versions(own, both)
        names = _names(versions)
        a, b = (
            self._side(name, Chosen(version, of_side.guards, path), of_side.sets)
            for name, (version, path), of_side in zip(names, versions, own, strict=True)
        )
        return a, b

    def _versions(self, own: Sequence[_Own], both: str | None) -> list[tuple[str, str]]:
        """(profile, propagation) of each side; empty: the profile's own. Sides that differ in
        nothing else are both paths of one version."""
        named = any(one.profile for one in own)
        if both is not None and named:
            raise UserError("--profile names the version of both sides, --a and --b one each")
        scenarios = both or load(shipped.find(self.scenario)).profile
        if named or own[0] != own[1]:
            return [(one.profile or scenarios, "") for one in own]
        able = both is not None or set(PATHS) <= set(profiles()[scenarios].propagations)
        return [(scenarios if able else BOTH_PATHS, path) for path in PATHS]

    def _side(self, name: str, chosen: Chosen, sets: tuple[str, ...]) -> Variant:
        """One side, with the command that plays its first seed."""
        loaded = load(shipped.find(self.scenario), sets, chosen)
        check_playable(loaded, self.zookeeper, self.time_scale)
        words = words_of(self.scenario, self.seed, self.zookeeper, self.time_scale, list(sets))
        repeat = shlex.join(["isr", "run", *words, *chosen.words(), *self._out()])
        return Variant(name, loaded, sets, repeat)

    def asked(self, sides: tuple[Variant, Variant], number: int, jobs: int) -> Asked:
        """All that is to be played."""
        return Asked(
            sides=sides,
            seeds=range(self.seed, self.seed + number),
            jobs=jobs,
            zookeeper=self.zookeeper,
            time_scale=self.time_scale,
            base=self.out,
        )

    def announced(self, sides: tuple[Variant, Variant], number: int) -> str:
        """The first line: the seed, before anything can go wrong."""
        scenario, names = sides[0].scenario, " and ".join(side.name for side in sides)
        words = f"{scenario.name}: {names}, {number} each"
        return announcement(words, self.seed, self.zookeeper, scenario.duration_us)

    def repeat(self, options: Mapping[str, object]) -> str:
        """The command that makes the same comparison."""
        words = ["isr", "compare", self.scenario, "--seed", f"{self.seed:#x}"]
        if self.zookeeper != SIMULATED:
            words += ["--zookeeper", self.zookeeper]
        if self.time_scale != 1:
            words += ["--time-scale", str(self.time_scale)]
        for option, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                words += [] if one is None else [option, str(one)]
        return shlex.join([*words, *self._out()])

    def _out(self) -> list[str]:
        return [] if self.out == Path("runs") else ["--out", str(self.out)]


def _names(versions: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """What tells the sides apart: the path, the version, or just that there are two."""
    for part in (1, 0):
        one, other = (version[part] for version in versions)
        if one and other and one != other:
            return one, other
    return "a", "b"


# -- plays -----------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """What was played: of each side its measures by seed, and where its first play is kept."""

    asked: Asked
    measured: tuple[dict[int, Measured], dict[int, Measured]]
    kept: dict[int, Path]
    broken_off: bool

    def compared(self, repeat: str) -> Compared:
        """The figures of the seeds that both sides have played."""
        asked = self.asked
        both = [seed for seed in asked.seeds if all(seed in side for side in self.measured)]
        sides = [[of[seed] for seed in both] for of in self.measured]
        paths = {
            variant.name: figures(variant, runs, self.kept.get(place))
            for place, (variant, runs) in enumerate(zip(asked.sides, sides, strict=True))
        }
        return Compared(
            scenario=asked.sides[0].scenario.name,
            first_seed=asked.seeds[0],
            seeds=len(both),
            zookeeper=asked.zookeeper,
            time_scale=asked.time_scale,
            paths=paths,
            broken_off=self.broken_off,
            repeat=repeat,
        )


def _play(asked: Asked, *, shown: bool) -> _Seen:
    """All of it, or until the user ends it."""
    seen = _Seen(asked, ({}, {}), {}, False)
    names = tuple(side.name for side in asked.sides)
    try:
        with orderly_end(), PlaysBar(2 * len(asked.seeds), names, shown=shown) as bar:
            for played in plays(asked, bar.play_goes_on):
                if played.broken_off:
                    raise KeyboardInterrupt
                seen.measured[played.side][played.measured.seed] = played.measured
                if played.directory is not None:
                    seen.kept[played.side] = played.directory
                bar.play_is_over()
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
