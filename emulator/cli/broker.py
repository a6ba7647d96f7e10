"""`isr broker`: one broker as a process of its own, at a ZooKeeper that is there.

Owns the options and what is said of wrong ones; the broker is `runtime.broker_process`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.parts.options import (
    GuardOption,
    ProfileOption,
    PropagationOption,
    Sets,
    chosen_version,
)
from emulator.kafka.model.config import BadSetting, KafkaConfig
from emulator.kafka.profiles.base import Profile
from emulator.scenario.errors import UserError
from emulator.scenario.settings import overrides
from emulator.scenario.version import read_version
from emulator.worlds.processes.broker_process import BrokerOptions, StandaloneBroker, check_profile
from emulator.worlds.processes.stored_logs import claim
from zk.real.server import parse_address

Page = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Metrics and status over HTTP; for isr top too."),
]

Through = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT=HOST:PORT",
        help="Reach the broker that is told to be at the first through a proxy at the second; may"
        " be repeated.",
    ),
]


def command(
    broker: Annotated[int, typer.Option("--id", min=0, metavar="N", help="broker.id.")],
    zookeeper: Annotated[
        str, typer.Option(metavar="HOST:PORT[,HOST:PORT...][/chroot]", help="Where ZooKeeper is.")
    ],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where this broker answers.")
    ] = "127.0.0.1:9092",
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="What others are told, if not --listen."),
    ] = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    sets: Sets = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Logs and checkpoints; without it, in memory alone."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The trace: a file, or a folder (broker-N.ndjson)."),
    ] = None,
    page: Page = None,
    through: Through = None,
    began_ns: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run one broker, speaking Kafka's protocol, until SIGTERM (controlled shutdown).

    Brokers at the same ZooKeeper are a cluster; any of them becomes its controller. Kafka's own
    clients and tools work against them:

    \b
      isr broker --id 1 --zookeeper 127.0.0.1:2181 --listen 127.0.0.1:9092
      isr topics create orders --bootstrap 127.0.0.1:9092 --partitions 2 --replication-factor 1

    What happens is told on standard error. Exit code 0: it stopped in an orderly way; 1: it halted;
    64: a mistake in what was asked for, or no ZooKeeper there.
    """
    version = read_version({}, chosen_version(profile, guard, propagation))
    chosen = version.of(version.profile)
    check_profile(chosen)
    settings = overrides(tuple(sets or ()))
    check_settings(chosen, settings)
    parse_address(zookeeper)
    bound = host_and_port("--listen", listen)
    told = host_and_port("--advertise", advertise) if advertise else bound
    if told[0] in ("0.0.0.0", "::"):
        raise UserError(f"--listen {listen}: nobody can be told that; say --advertise HOST:PORT")
    if data is not None:
        claim(data, broker)
    options = BrokerOptions(
        broker=broker,
        zookeeper=zookeeper,
        listen=bound,
        advertised=told,
        profile=chosen,
        settings=settings,
        data=data,
        trace=None if trace is None else trace_file(trace, broker),
        began_ns=began_ns,
        page=None if page is None else host_and_port("--page", page),
        through=dict(route(pair) for pair in through or ()),
    )
    if not StandaloneBroker(options).run():
        raise typer.Exit(1)


def check_settings(profile: Profile, settings: dict[str, str]) -> None:
    """UserError for a value that a setting cannot have."""
    try:
        KafkaConfig.of(profile.values, settings)
    except BadSetting as error:
        raise UserError(f"--set: {error}") from None


def host_and_port(option: str, text: str) -> tuple[str, int]:
    """UserError when it is not of that form."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"{option} {text}: HOST:PORT is wanted")
    return host.strip("[]"), int(port)


def route(text: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """Whom, and where. UserError."""
    whom, equals, where = text.partition("=")
    if not equals:
        raise UserError(f"--through {text}: HOST:PORT=HOST:PORT is wanted")
    return host_and_port("--through", whom), host_and_port("--through", where)


def trace_file(path: Path, broker: int) -> Path:
    """Of a folder, the broker's own file in it. UserError."""
    file = path / f"broker-{broker}.ndjson" if path.is_dir() or not path.suffix else path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--trace {path}: {error.strerror}") from None
    return file
