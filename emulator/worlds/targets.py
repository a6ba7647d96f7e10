"""The capabilities of each target (`--target`, `--zookeeper`): a whole scenario is checked before
anything starts."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.scenario.capabilities import ClusterCapabilities, check_steps
from emulator.scenario.schema import Host, Scenario
from emulator.worlds.emulated_host import emulated_capabilities
from emulator.worlds.live import DOCKER, EMBEDDED
from emulator.worlds.zookeeper import ForeignServer, ModelledServer, OwnServer

SIMULATED, PROCESSES = "simulated", "processes"
OF_PROCESSES = (PROCESSES, "containers", "compose")
"""Targets whose brokers are processes of their own."""


def check_supported(scenario: Scenario, target: str, zookeeper: str) -> None:
    """Raises UserError for the first action of a scenario that the target does not support."""
    capabilities, to = capabilities_of(target, zookeeper, scenario.hosts)
    check_steps(scenario, capabilities, to)


def capabilities_of(
    target: str, zookeeper: str, hosts: Mapping[int, Host]
) -> tuple[ClusterCapabilities, str]:
    """The capabilities of a target, with its name for messages; `hosts` as in scenarios."""
    if target in OF_PROCESSES:
        from emulator.worlds.processes.host import process_capabilities

        own = process_capabilities(hosts, ensemble=target != PROCESSES)
        return own, "brokers that are processes of their own"
    if zookeeper == SIMULATED:
        return emulated_capabilities(ModelledServer()), "a cluster in virtual time"
    server = OwnServer() if zookeeper in (EMBEDDED, DOCKER) else ForeignServer()
    return emulated_capabilities(server), f"a cluster at --zookeeper {zookeeper}"
