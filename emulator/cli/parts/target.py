"""`--target`: the world that plays a scenario, and its compatible options.

Owns the option and its short form; `runs.play` makes the worlds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from emulator.scenario.errors import UserError
from emulator.worlds.kafka_logs import ReadKafkaLogs, no_logs

if TYPE_CHECKING:
    from emulator.scenario.load import LoadedScenario

EMBEDDED, DOCKER, SIMULATED = "embedded", "docker", "simulated"
LIVE, PROCESSES, CONTAINERS = "live", "processes", "containers"

Target = Literal["simulated", "live", "processes", "containers", "compose"]
TARGETS: tuple[str, ...] = get_args(Target)
OF_PROCESSES, IN_CONTAINERS = TARGETS[2:], TARGETS[3:]

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="|".join(TARGETS),
        help="simulated: virtual time; live (default): brokers in this process at a real"
        " ZooKeeper; processes: one process per broker; containers: one container per broker;"
        " compose: the containers of docker compose.",
    ),
]
Processes = Annotated[bool, typer.Option("--processes", help="Short for --target processes.")]


def chosen_target(target: str | None, zookeeper: str | None, *, processes: bool) -> tuple[str, str]:
    """The chosen target and ZooKeeper. Raises UserError."""
    if processes and target not in (None, PROCESSES):
        raise UserError(f"--processes: not with --target {target}")
    meant = PROCESSES if processes else target
    if meant is None:
        meant = SIMULATED if zookeeper == SIMULATED else LIVE
    if meant not in TARGETS:
        raise UserError(f"--target {target}: {', '.join(TARGETS[:-1])} or {TARGETS[-1]}")
    if zookeeper and (zookeeper == SIMULATED) != (meant == SIMULATED):
        raise UserError(f"--target {meant}: not with --zookeeper {zookeeper}")
    return meant, zookeeper or (SIMULATED if meant == SIMULATED else EMBEDDED)


def read_kafka_logs(loaded: LoadedScenario) -> ReadKafkaLogs:
    """Read the logs of the scenario's real Kafka hosts."""
    if all(host.kind != "kafka" for host in loaded.hosts.values()):
        return no_logs
    from emulator.forensics.kafka_hosts import read_kafka_host

    return read_kafka_host


def target_words(target: str) -> list[str]:
    """The options that repeat the choice; `--zookeeper` implies the other targets."""
    return ["--target", target] if target in OF_PROCESSES else []


def check_processes(loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str) -> None:
    """Raises UserError if the scenario cannot run with brokers as processes."""
    from emulator.worlds.processes.broker_process import OLDEST, check_profile
    from emulator.worlds.real_kafka.release import check_version, numbers_of

    if zookeeper != EMBEDDED:
        raise UserError(
            f"--target {target} starts its own ZooKeeper: leave out --zookeeper {zookeeper}"
        )
    if time_scale != 1:
        raise UserError(f"--target {target} runs in real time: leave out --time-scale")
    for boot in loaded.boots:
        check_profile(loaded.running(boot.broker))
    for broker, host in loaded.hosts.items():
        where = f"{loaded.source}: hosts.{broker}"
        if (host.kind == "container") != (target in IN_CONTAINERS):
            raise UserError(
                f"{where}: {host}: containers are not mixed with processes of this machine;"
                f" --target {IN_CONTAINERS[0]} runs every broker in a container"
            )
        if host.kind == "kafka":
            check_version(host.version, f"{where}: kafka")
            if numbers_of(host.version) < OLDEST:
                oldest = ".".join(map(str, OLDEST))
                raise UserError(f"{where}: {host}: the others speak the protocol of {oldest} on")
