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

import typer

from emulator.cli.parts import errors
from emulator.cli.parts.target import (
    DOCKER,
    EMBEDDED,
    OF_PROCESSES,
    SIMULATED,
    check_processes,
)
from emulator.runs.session import PlayFailed
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.units import show_us
from emulator.scenario.version import Chosen
from emulator.worlds.errors import TooFast
from zk.real.server import parse_address

T = TypeVar("T")


WIDTH = 140
"""Columns where the output is no terminal."""


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


def chosen_version(profile: str | None, guard: list[str] | None, propagation: str | None) -> Chosen:
    """The three options of a version."""
    return Chosen(profile or "", tuple(guard or ()), propagation or "")


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


def check_playable(
    loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str = ""
) -> None:
    """Whether this scenario can be played there at all. Raises UserError."""
    if target in OF_PROCESSES:
        check_processes(loaded, zookeeper, time_scale, target)
    _check_address(zookeeper)
    from emulator.worlds.targets import check_supported

    check_supported(loaded, target, zookeeper)
    _check_time_scale(loaded, zookeeper, time_scale)


def _check_address(zookeeper: str) -> None:
    """Said before anything is made; whether somebody answers there is seen later."""
    if zookeeper not in (EMBEDDED, DOCKER, SIMULATED) and ":" not in zookeeper:
        raise UserError(f"--zookeeper {zookeeper}: {EMBEDDED}, {DOCKER}, {SIMULATED} or HOST:PORT")
    if ":" in zookeeper:
        parse_address(zookeeper)


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
