"""`isr run SCENARIO`: play a scenario, live or in virtual time, and say what came of it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from emulator.cli import errors
from emulator.cli.run_check import check
from emulator.cli.run_progress import ProgressLine
from emulator.cli.run_report import EXIT_CODES, report
from emulator.cli.target import (
    DOCKER,
    EMBEDDED,
    OF_PROCESSES,
    SIMULATED,
    Processes,
    TargetOption,
    check_one_server,
    check_processes,
    chosen_target,
    target_words,
)
from emulator.hazards.base import recognise
from emulator.runtime.perform import PlayFailed, Request, perform
from emulator.runtime.play import TooFast
from emulator.scenario import shipped
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, load
from emulator.scenario.units import show_us
from emulator.scenario.version import Chosen
from zk.server import parse_address

T = TypeVar("T")

WIDTH = 140
"""Columns where the output is no terminal."""


def _epilog() -> str:
    """A scenario in full, in the words of the file that comes with us."""
    path = shipped.shipped().get(next(iter(_shown()), ""))
    if path is None:
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks = "\n".join(f"  {line}" if line else "" for line in lines).split("\n\n")
    return f"A scenario in full ({path.name}):\n\n" + "\n\n".join(f"\b\n{b}" for b in blocks)


def _shown() -> list[str]:
    """The shortest of the shipped scenarios that has a fault."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in shipped.shipped().items()}
    return sorted((n for n in texts if "\nfaults:" in texts[n]), key=lambda name: len(texts[name]))


OPTIONS = {"epilog": _epilog()}
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        metavar="embedded|docker|simulated|HOST:PORT[,HOST:PORT...][/chroot]",
        help="A server of our own on loopback (default), one in a container, virtual time, or a"
        " server that you have.",
    ),
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The trace into this data set as well (isr analyze)."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="summary.json on standard output, all else on stderr.")
]
Twice = Annotated[
    bool,
    typer.Option(
        "--check", help="In virtual time, in two processes that hash differently: the same?"
    ),
]


ProfileOption = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="A Kafka version (isr profiles).")
]
GuardOption = Annotated[
    list[str] | None,
    typer.Option(
        "--guard",
        metavar="NAME=off|on",
        help="Take one of Kafka's fixes out, or put it in; may be repeated.",
    ),
]
PropagationOption = Annotated[
    str | None,
    typer.Option(
        "--propagation",
        metavar="zk|rpc",
        help="Who writes a changed ISR: the leader, or the controller (AlterIsr).",
    ),
]


def chosen_version(profile: str | None, guard: list[str] | None, propagation: str | None) -> Chosen:
    """The three options of a version."""
    return Chosen(profile or "", tuple(guard or ()), propagation or "")


def command(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A name (isr scenarios) or a YAML file.")
    ],
    zookeeper: ZooKeeper = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any Kafka setting; may be repeated."),
    ] = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    time_scale: Annotated[
        int, typer.Option(min=1, max=1000, help="Live: divide all times by this.")
    ] = 1,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="Decimal or 0x...; drawn if not given.")
    ] = None,
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
    if twice:
        _check_twice(zookeeper, parquet)
    number = seed_of(seed)
    console = Console(stderr=as_json, highlight=False, width=width_of(as_json=as_json))
    if not quiet:
        console.print(announcement(loaded.name, number, zookeeper, loaded.duration_us))
    words = [*words_of(scenario, number, zookeeper, time_scale, sets or []), *chosen.words()]
    repeat = _repeat([*words, *target_words(where)], out, twice=twice)
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
        recognise=recognise,
    )
    request = _recorded(request, parquet)
    with orderly_end(), ProgressLine(loaded.duration_us, shown=not quiet) as line:
        performed = performing(lambda: perform(request, line))
    report(console, performed, repeat, quiet=quiet)
    if as_json:
        typer.echo(msgspec.json.encode(performed.summary))
    raise typer.Exit(EXIT_CODES[performed.summary.verdict])


def _recorded(request: Request, parquet: Path | None) -> Request:
    if parquet is None:
        return request
    from emulator.sweep.recording import recorder

    return msgspec.structs.replace(request, recorder=recorder(parquet, request))


def performing(play: Callable[[], T]) -> T:
    """Play, with an error of the play as the command line tells it."""
    try:
        return play()
    except PlayFailed as failed:
        cause = failed.__cause__
        assert cause is not None
        if errors.explains_itself(cause):
            raise cause from None
        raise errors.Fault(cause, failed.kept) from cause


def _check_twice(zookeeper: str, parquet: Path | None) -> None:
    if parquet is not None:
        raise UserError("--check plays twice and keeps one: --parquet does not go with it")
    if zookeeper != SIMULATED:
        raise UserError(f"--check compares runs in virtual time: --zookeeper {SIMULATED}")


def check_playable(
    loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str = ""
) -> None:
    """Whether this scenario can be played there at all. Raises UserError."""
    if target in OF_PROCESSES:
        check_processes(loaded, zookeeper, time_scale, target)
    else:
        check_one_server(loaded)
    _check_address(zookeeper)
    _check_server(loaded, zookeeper)
    _check_time_scale(loaded, zookeeper, time_scale)


def _check_address(zookeeper: str) -> None:
    """Said before anything is made; whether somebody answers there is seen later."""
    if zookeeper not in (EMBEDDED, DOCKER, SIMULATED) and ":" not in zookeeper:
        raise UserError(f"--zookeeper {zookeeper}: {EMBEDDED}, {DOCKER}, {SIMULATED} or HOST:PORT")
    if ":" in zookeeper:
        parse_address(zookeeper)


def _check_server(loaded: LoadedScenario, zookeeper: str) -> None:
    """What is done to the server itself takes one that is in our hands."""
    for step in loaded.steps:
        if step.stimulus.only_modelled and zookeeper != SIMULATED:
            raise UserError(
                f"{loaded.source}: {step.stimulus.name} at {show_us(step.at_us)} is what no real"
                f" ZooKeeper server can be told to do: --zookeeper {SIMULATED}, not {zookeeper}"
            )
    for step in loaded.steps if ":" in zookeeper else ():
        if step.stimulus.needs_own_server:
            raise UserError(
                f"{loaded.source}: {step.stimulus.name} at {show_us(step.at_us)} strikes the"
                f" ZooKeeper server: --zookeeper {EMBEDDED} or {SIMULATED}, not {zookeeper}"
            )


def _check_time_scale(loaded: LoadedScenario, zookeeper: str, time_scale: int) -> None:
    """Our own server's tick is whole milliseconds, one at least."""
    tick_ms = loaded.zookeeper.tick_time_ms
    if zookeeper in (EMBEDDED, DOCKER) and time_scale > tick_ms:
        raise TooFast(time_scale, f"ZooKeeper's tick of {tick_ms} ms would be less than 1 ms")


def width_of(*, as_json: bool) -> int | None:
    """None: the terminal's own."""
    stream = sys.stderr if as_json else sys.stdout
    return None if stream.isatty() or "COLUMNS" in os.environ else WIDTH


def announcement(name: str, seed: int, zookeeper: str, duration_us: int) -> str:
    """The first line of a run: its seed, before anything can go wrong."""
    where = "virtual time" if zookeeper == SIMULATED else f"ZooKeeper {zookeeper}"
    return f"seed {seed:#x}   {name}, {show_us(duration_us)}, {where}"


def seed_of(text: str | None) -> int:
    """Decimal or hexadecimal, 64 bits at most."""
    if text is None:
        return int.from_bytes(os.urandom(4))
    try:
        number = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise UserError(f"--seed {text}: a whole number is wanted, such as 7 or 0x1f") from None
    if not 0 <= number < 1 << 64:
        raise UserError(f"--seed {text}: between 0 and 2^64 - 1")
    return number


def words_of(
    scenario: str, seed: int, zookeeper: str, time_scale: int, sets: list[str]
) -> list[str]:
    """What says which run it is; what has its default value is left out."""
    words = [scenario, "--seed", f"{seed:#x}"]
    if zookeeper != EMBEDDED:
        words += ["--zookeeper", zookeeper]
    if time_scale != 1:
        words += ["--time-scale", str(time_scale)]
    for pair in sets:
        words += ["--set", pair]
    return words


def _repeat(words: list[str], out: Path, *, twice: bool) -> str:
    """The command that plays this again."""
    there = ["--out", str(out)] if out != Path("runs") else []
    return shlex.join(["isr", "run", *words, *there, *["--check"] * twice])


@contextmanager
def orderly_end() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal end the run as an interrupt, so that data is kept."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
