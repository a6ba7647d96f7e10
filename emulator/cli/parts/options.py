"""Options that several commands take, and the checks and announcement before a run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from emulator.cli.parts import errors
from emulator.cli.parts.target import (
    DOCKER,
    EMBEDDED,
    OF_PROCESSES,
    PROCESSES,
    SIMULATED,
    check_processes,
)
from emulator.runs.run_directory import RUN_HELP
from emulator.scenario.errors import UserError
from emulator.scenario.units import BadDuration, duration_us, show_us
from emulator.scenario.version import VersionOptions
from emulator.worlds.errors import TooFast
from zk.real.server import parse_address

if TYPE_CHECKING:  # half of all commands play nothing, and skip these slow imports
    from emulator.scenario.load import LoadedScenario

T = TypeVar("T")
WIDTH = 140
"""Columns when the output is not a terminal."""

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A name from isr scenarios, or a YAML file.")
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A Kafka setting; may be repeated."),
]
Seed = Annotated[
    str | None, typer.Option(metavar="N", help="Seed, decimal or 0x...; default: random.")
]
FirstSeed = Annotated[
    str | None, typer.Option(metavar="S", help="First seed, decimal or 0x...; default: random.")
]
TimeScale = Annotated[
    int, typer.Option(min=1, max=1000, help="Live runs: divide all times by this.")
]
Width = Annotated[int | None, typer.Option(help="Columns; default: the width of the terminal.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Lasting = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as 30s.")
]
ClusterZooKeeper = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT[,HOST:PORT...][/chroot]|RUN",
        help="ZooKeeper of the cluster, or the run of isr cluster up.",
    ),
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        metavar="embedded|docker|simulated|HOST:PORT[,HOST:PORT...][/chroot]",
        help="embedded: a server started for this run (default); docker: one in a container;"
        " simulated: virtual time; or the address of your own server.",
    ),
]
Parquet = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Also add the trace to this data set (isr analyze)."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print summary.json; everything else goes to stderr.")
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Kafka version (isr profiles).")
]
GuardOption = Annotated[
    list[str] | None,
    typer.Option(
        "--guard",
        metavar="NAME=off|on",
        help="Turn one of Kafka's fixes off or on; may be repeated.",
    ),
]
PropagationOption = Annotated[
    str | None,
    typer.Option(
        "--propagation",
        metavar="zk|rpc",
        help="Who writes ISR changes: the leader (zk) or the controller (rpc, AlterIsr).",
    ),
]


def chosen_version(
    profile: str | None, guard: list[str] | None, propagation: str | None
) -> VersionOptions:
    """The three options of a version."""
    return VersionOptions(profile or "", tuple(guard or ()), propagation or "")


def play_or_explain(play: Callable[[], T]) -> T:
    """Play, and turn an error of the play into one that the command line reports."""
    from emulator.runs.session import PlayFailed

    try:
        return play()
    except PlayFailed as failed:
        cause = failed.__cause__
        assert cause is not None
        if errors.has_own_exit_code(cause):
            raise cause from None
        raise errors.InternalError(cause, failed.traceback_file) from cause


def check_playable(
    loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str = ""
) -> None:
    """Check before anything is created that the target can play this scenario; whether a server
    responds is checked later. Raises UserError."""
    if target in OF_PROCESSES:
        check_processes(loaded, zookeeper, time_scale, target)
    elif loaded.hosts and zookeeper != SIMULATED:
        raise UserError(
            f"{loaded.source}: hosts: on this target all brokers are in one process; leave out"
            f" --target, or choose {PROCESSES}, or {SIMULATED}, which emulates all"
        )
    if ":" in zookeeper:
        parse_address(zookeeper)
    elif zookeeper not in (EMBEDDED, DOCKER, SIMULATED):
        raise UserError(f"--zookeeper {zookeeper}: {EMBEDDED}, {DOCKER}, {SIMULATED} or HOST:PORT")
    from emulator.worlds.targets import check_supported

    check_supported(loaded, target, zookeeper)
    # The tick of a server started for the run is in whole milliseconds.
    tick_ms = loaded.zookeeper.tick_time_ms
    if zookeeper in (EMBEDDED, DOCKER) and time_scale > tick_ms:
        raise TooFast(time_scale, f"ZooKeeper's tick of {tick_ms} ms would be less than 1 ms")


def report_console(*, as_json: bool = False) -> Console:
    """The console for people: standard error with --json, as wide as the terminal."""
    stream = sys.stderr if as_json else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(stderr=as_json, highlight=False, width=width)


def print_json(value: object) -> None:
    """Print one line of JSON on standard output, unbuffered."""
    typer.echo(msgspec.json.encode(value))


def read_duration(option: str, text: str) -> int:
    """Read a duration in microseconds. Raises UserError, which begins with `option`."""
    try:
        return duration_us(text)
    except BadDuration as error:
        raise UserError(f"{option}: {error}") from None


def announcement(name: str, seed: int, zookeeper: str, duration_us: int) -> str:
    """The first line of a run, with its seed, printed before anything can fail."""
    where = "virtual time" if zookeeper == SIMULATED else f"ZooKeeper {zookeeper}"
    return f"seed {seed:#x}   {name}, {show_us(duration_us)}, {where}"


def read_seed(text: str | None, option: str = "--seed") -> int:
    """Read a decimal or hexadecimal seed of at most 64 bits. Raises UserError."""
    if text is None:
        return int.from_bytes(os.urandom(4))
    try:
        number = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise UserError(f"{option} {text}: not a whole number (try 7 or 0x1f)") from None
    if not 0 <= number < 1 << 64:
        raise UserError(f"{option} {text}: between 0 and 2^64 - 1")
    return number


def command_words(
    scenario: str, seed: int, zookeeper: str, time_scale: int, sets: list[str]
) -> list[str]:
    """The options that identify a run; defaults are left out."""
    words = [scenario, "--seed", f"{seed:#x}"]
    if zookeeper != EMBEDDED:
        words += ["--zookeeper", zookeeper]
    if time_scale != 1:
        words += ["--time-scale", str(time_scale)]
    for pair in sets:
        words += ["--set", pair]
    return words


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into KeyboardInterrupt, so that data is saved."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
