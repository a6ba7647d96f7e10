"""`isr broker`: one broker as a process of its own, at an existing ZooKeeper.

Owns the options and their error messages; `worlds.processes.broker_process` runs the broker.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import nullcontext
from ipaddress import ip_address
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
from emulator.cli.parts.zookeeper_wait import wait_for_server
from emulator.kafka.model.config import BadSetting, KafkaConfig
from emulator.kafka.profiles.base import Profile
from emulator.scenario.errors import UserError
from emulator.scenario.settings import overrides
from emulator.scenario.version import read_version
from emulator.worlds.processes.broker_process import BrokerOptions, StandaloneBroker, check_profile
from emulator.worlds.storage.files import OperatingSystemFiles
from emulator.worlds.storage.stored_logs import claim
from zk.real.server import parse_address

Page = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Serve metrics and status over HTTP here; isr top reads them."
    ),
]

Through = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT=HOST:PORT",
        help="Connect to the broker advertised at the first address through a proxy at the"
        " second; may be repeated.",
    ),
]


def command(
    context: typer.Context,
    broker: Annotated[int, typer.Option("--id", min=0, metavar="N", help="broker.id.")],
    zookeeper: Annotated[
        str, typer.Option(metavar="HOST:PORT[,HOST:PORT...][/chroot]", help="Address of ZooKeeper.")
    ],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address on which the broker listens.")
    ] = "127.0.0.1:9092",
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Address for clients and other brokers; default: --listen."
        ),
    ] = None,
    profile: ProfileOption = None,
    guard: GuardOption = None,
    propagation: PropagationOption = None,
    sets: Sets = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Directory of logs and checkpoints; default: memory only."
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Write the trace to this file, or to broker-N.ndjson in this directory.",
        ),
    ] = None,
    page: Page = None,
    through: Through = None,
    began_ns: Annotated[int | None, typer.Option(hidden=True)] = None,
    synced: Annotated[Path | None, typer.Option(hidden=True)] = None,
    clock: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run one broker that speaks Kafka's protocol, until SIGTERM (controlled shutdown).

    Brokers on the same ZooKeeper form a cluster, and one of them becomes its controller. Kafka's
    own clients and tools work with them. Events are logged to standard error.

    \b
      isr zookeeper --port 2181 &
      isr broker --id 1 --zookeeper 127.0.0.1:2181 --listen 127.0.0.1:9092 &
      isr topics create orders --partitions 2 --replication-factor 1

    Exit codes: 0 the broker shut down; 1 it halted; 64 usage error, or no ZooKeeper at the address.
    """
    version = read_version({}, chosen_version(profile, guard, propagation))
    chosen = version.of(version.profile)
    check_profile(chosen)
    settings = overrides(tuple(sets or ()))
    check_settings(chosen, settings)
    parse_address(zookeeper)
    bound = host_and_port("--listen", listen)
    advertised = host_and_port("--advertise", advertise) if advertise else bound
    if advertised[0] in ("0.0.0.0", "::"):
        raise UserError(
            f"--listen {listen}: clients cannot connect to that address; add --advertise HOST:PORT"
        )
    options = BrokerOptions(
        broker=broker,
        zookeeper=zookeeper,
        listen=bound,
        advertised=advertised,
        profile=chosen,
        settings=settings,
        data=data,
        trace=None if trace is None else trace_file(trace, broker),
        began_ns=began_ns,
        synced=synced,
        clock=clock,
        page=None if page is None else host_and_port("--page", page),
        through=dict(route(pair) for pair in through or ()),
    )
    if not is_loopback(bound[0]):
        print(
            f"isr: --listen {listen}: no authentication: everybody who reaches this address can"
            " do anything to this cluster (SECURITY.md)",
            file=sys.stderr,
        )
    run: Callable[[BrokerOptions], object] = context.obj or run_broker
    run(options)


def run_broker(options: BrokerOptions) -> None:
    """A process of its own. UserError; `typer.Exit(1)` when it halted."""
    # As many descriptors as the machine allows, like the JVM (-XX:+MaxFDLimit).
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files, data = OperatingSystemFiles(), options.data
    with nullcontext() if data is None else claim(files, data, options.broker):
        process = StandaloneBroker(options)  # listens at once: a port in use is an error
        if options.began_ns is None:
            wait_for_server(options.zookeeper)
        if not process.run():
            raise typer.Exit(1)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_settings(profile: Profile, settings: dict[str, str]) -> None:
    """Raises UserError for an invalid value."""
    try:
        KafkaConfig.of(profile.values, settings)
    except BadSetting as error:
        raise UserError(f"--set: {error}") from None


def host_and_port(option: str, text: str) -> tuple[str, int]:
    """Read HOST:PORT. Raises UserError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"{option} {text}: not of the form HOST:PORT")
    return host.strip("[]"), int(port)


def route(text: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """Read (advertised address, proxy). Raises UserError."""
    target, equals, proxy = text.partition("=")
    if not equals:
        raise UserError(f"--through {text}: not of the form HOST:PORT=HOST:PORT")
    return host_and_port("--through", target), host_and_port("--through", proxy)


def trace_file(path: Path, broker: int) -> Path:
    """The trace file; in a directory, the broker's own. Raises UserError."""
    file = path / f"broker-{broker}.ndjson" if path.is_dir() or not path.suffix else path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--trace {path}: {error.strerror}") from None
    return file
