"""Options that several commands take, and what is checked and said before a play."""

from __future__ import annotations

import os
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

from emulator.cli.parts import errors
from emulator.cli.parts.target import (
    DOCKER,
    EMBEDDED,
    OF_PROCESSES,
    SIMULATED,
    check_processes,
)
from emulator.runs.run_directory import RUN_HELP
from emulator.runs.session import PlayFailed
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.units import BadDuration, duration_us, show_us
from emulator.scenario.version import VersionOptions
from emulator.worlds.errors import TooFast
from zk.real.server import parse_address

T = TypeVar("T")
WIDTH = 140
"""Columns where the output is no terminal."""

ScenarioArgument = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A name (isr scenarios) or a YAML file.")
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any Kafka setting; may be repeated."),
]
Seed = Annotated[
    str | None, typer.Option(metavar="N", help="Decimal or 0x...; drawn if not given.")
]
FirstSeed = Annotated[
    str | None, typer.Option(metavar="S", help="The first seed, decimal or 0x...; else drawn.")
]
TimeScale = Annotated[int, typer.Option(min=1, max=1000, help="Live: divide all times by this.")]
Width = Annotated[int | None, typer.Option(help="Columns; default: the terminal's.")]
OneObject = Annotated[bool, typer.Option("--json", help="As one JSON object.")]
Lasting = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="End by itself after this.")
]
ClusterZooKeeper = Annotated[
    str,
    typer.Option(metavar="HOST:PORT[,HOST:PORT...][/chroot]", help="The cluster's ZooKeeper."),
]
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


def chosen_version(
    profile: str | None, guard: list[str] | None, propagation: str | None
) -> VersionOptions:
    """The three options of a version."""
    return VersionOptions(profile or "", tuple(guard or ()), propagation or "")


def performing(play: Callable[[], T]) -> T:
    """Play, with an error of the play as the command line tells it."""
    try:
        return play()
    except PlayFailed as failed:
        cause = failed.__cause__
        assert cause is not None
        if errors.explains_itself(cause):
            raise cause from None
        raise errors.Fault(cause, failed.traceback_file) from cause


def check_playable(
    loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str = ""
) -> None:
    """Whether this scenario can be played there at all, before anything is made; whether a server
    answers at the address is seen later. Raises UserError."""
    if target in OF_PROCESSES:
        check_processes(loaded, zookeeper, time_scale, target)
    if ":" in zookeeper:
        parse_address(zookeeper)
    elif zookeeper not in (EMBEDDED, DOCKER, SIMULATED):
        raise UserError(f"--zookeeper {zookeeper}: {EMBEDDED}, {DOCKER}, {SIMULATED} or HOST:PORT")
    from emulator.worlds.targets import check_supported

    check_supported(loaded, target, zookeeper)
    # A server of ours takes its tick in whole milliseconds.
    tick_ms = loaded.zookeeper.tick_time_ms
    if zookeeper in (EMBEDDED, DOCKER) and time_scale > tick_ms:
        raise TooFast(time_scale, f"ZooKeeper's tick of {tick_ms} ms would be less than 1 ms")


def report_console(*, as_json: bool = False) -> Console:
    """Where a command reports to people: with --json standard error, as wide as a terminal is."""
    stream = sys.stderr if as_json else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH
    return Console(stderr=as_json, highlight=False, width=width)


def print_json(value: object) -> None:
    """One line of JSON on standard output, at once."""
    typer.echo(msgspec.json.encode(value))


def read_duration(option: str, text: str) -> int:
    """Microseconds. Raises UserError, which begins with `option`."""
    try:
        return duration_us(text)
    except BadDuration as error:
        raise UserError(f"{option}: {error}") from None


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
