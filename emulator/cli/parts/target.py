"""`--target`: which world a scenario is played in, and what that asks of the other options.

Owns the option and its short form; the worlds are `runtime.play`'s.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import typer

from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario

EMBEDDED, DOCKER, SIMULATED = "embedded", "docker", "simulated"
LIVE, PROCESSES = "live", "processes"

Target = Literal["simulated", "live", "processes", "containers", "compose"]
TARGETS: tuple[str, ...] = get_args(Target)
OF_PROCESSES, IN_CONTAINERS = TARGETS[2:], TARGETS[3:]

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="|".join(TARGETS),
        help="Virtual time; brokers in this process at a real ZooKeeper (default); or each broker a"
        " process of its own (isr broker), with signals and proxies for faults: on this machine, in"
        " containers, or in containers of the environment that docker compose has put up.",
    ),
]
Processes = Annotated[bool, typer.Option("--processes", help="The same as --target processes.")]


def chosen_target(target: str | None, zookeeper: str | None, *, processes: bool) -> tuple[str, str]:
    """Which one is meant, and at which ZooKeeper. Raises UserError."""
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


def target_words(target: str) -> list[str]:
    """What says it again; `--zookeeper` says the others."""
    return ["--target", target] if target in OF_PROCESSES else []


def check_processes(loaded: LoadedScenario, zookeeper: str, time_scale: int, target: str) -> None:
    """Whether it can be played with brokers as processes. Raises UserError."""
    from emulator.worlds.processes.broker_process import check_profile

    if zookeeper != EMBEDDED:
        raise UserError(f"--target {target}: it has a ZooKeeper of its own, not {zookeeper}")
    if time_scale != 1:
        raise UserError(f"--target {target}: time goes as it does (no --time-scale)")
    for boot in loaded.boots:
        check_profile(loaded.running(boot.broker))
