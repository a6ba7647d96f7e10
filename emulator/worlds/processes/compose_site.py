"""Brokers in the environment of docker-compose.yml: its network and its ZooKeeper.

The environment's own brokers are stopped for the duration of a run; brokers with the scenario's
settings take their names, and afterwards the environment's own are started again. ZooKeeper keeps
the run in a separate chroot, which is deleted afterwards. From inside (`docker compose run lab`)
all are reached by name; from the host, on the published ports.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.scenario.schema import Scenario
from emulator.worlds.live import server_times
from emulator.worlds.processes.container_site import ContainerDeployment
from zk.real.server import (
    HOST,
    Address,
    ServerError,
    ensure_chroot,
    parse_address,
    remove_chroot,
    require_session_timeout,
    wait_until_ready,
)
from zk.real.server_container import SERVES_TIMEOUT_MS, FoundServer
from zk.real.server_ensemble import Ensemble
from zk.real.txnlog import Entry, within

if TYPE_CHECKING:  # the Docker SDK takes half a second to import
    from docker.models.containers import Container

PORT = 9092
PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"
ONE_OFF = "com.docker.compose.oneoff"
STOPS_S = 60
"""The last of several brokers finds nobody to hand its leaderships to, and tries three times. One
that is killed leaves a registration, and would not start again while that stands."""


class NoEnvironment(ServerError):
    """`docker compose up` was not run, or several environments match."""


class ComposeDeployment(ContainerDeployment):
    """One run in an existing environment."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """See ContainerDeployment."""
        self._stood_by: list[Container] = []
        self._servers_found: list[FoundServer] = []
        super().__init__(scenario, folder)

    def _prepare(self, scenario: Scenario) -> None:
        """Find the environment; nothing is changed yet. Raises NoEnvironment."""
        from docker.errors import NotFound

        self._times = server_times(scenario, 1)
        own: Container | None = None
        with suppress(NotFound):  # this process is in a container, or it is not
            own = self.engine.containers.get(socket.gethostname())
        self._inside = own is not None
        project = os.environ.get("COMPOSE_PROJECT_NAME", "")
        if own is not None:
            project = own.labels.get(PROJECT, project)
        every = self.engine.containers.list(filters={"label": PROJECT})
        running = {one.labels[PROJECT] for one in every if one.labels.get(SERVICE) == "broker-1"}
        projects = sorted(running & {project} if project else running)
        if len(projects) != 1:
            what = "several environments run" if projects else "no environment runs"
            raise NoEnvironment(
                f"--target compose: {what}; docker compose up -d, COMPOSE_PROJECT_NAME names one"
            )
        (project,) = projects
        self._services: dict[str, Container] = {
            one.labels[SERVICE]: one for one in every if one.labels[PROJECT] == project
        }
        first = self._services["broker-1"]
        self.network = next(iter(first.attrs["NetworkSettings"]["Networks"]))
        if own is not None:
            self.here = str(own.attrs["NetworkSettings"]["Networks"][self.network]["IPAddress"])
        else:
            network = self.engine.networks.get(self.network)
            network.reload()
            self.here = str(network.attrs["IPAM"]["Config"][0]["Gateway"])
        self.labels |= {PROJECT: project, SERVICE: self.name, ONE_OFF: "False"}
        # The servers that the environment's brokers use, by name.
        words = first.attrs["Config"]["Cmd"]
        servers = parse_address(words[words.index("--zookeeper") + 1]).servers
        self._servers_found = [FoundServer(self._services[name]) for name, _ in servers]
        self._ensemble = Ensemble(self._servers_found)
        self.zookeeper = Address(tuple(self._reach(*one) for one in servers), f"/{self.name}")

    def _reach(self, service: str, port: int) -> tuple[str, int]:
        """The address at which this process reaches a service of the environment."""
        if self._inside:
            return service, port
        settings = self._services[service].attrs["NetworkSettings"]
        for published in settings["Ports"].get(f"{port}/tcp") or ():
            return HOST, int(published["HostPort"])
        return str(settings["Networks"][self.network]["IPAddress"]), port

    # -- up ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Stop the environment's brokers; the servers must allow the scenario's session
        timeouts."""
        _, least_ms, most_ms = self._times
        plain = Address(self.zookeeper.servers)
        wait_until_ready(plain)
        for asked_ms in (least_ms, most_ms):
            require_session_timeout(plain, asked_ms)
        running, needed = len(self._servers_found), self.scenario.zookeeper.servers
        if running < needed:
            raise NoEnvironment(
                f"--target compose: the scenario wants {needed} ZooKeeper servers, the"
                f" environment's brokers use {running}"
            )
        for name, container in sorted(self._services.items()):
            if name.startswith("broker-"):
                self._stood_by.append(container)
                container.stop(timeout=STOPS_S)
        ensure_chroot(self.zookeeper)

    def address_of(self, broker: int) -> tuple[str, int]:
        return (self._alias(broker), PORT) if self._inside else super().address_of(broker)

    def _published(self, broker: int) -> dict[str, tuple[str, int]]:
        return {} if self._inside else super()._published(broker)

    # -- down --------------------------------------------------------------------------------------

    def gather(self) -> list[Entry]:
        return list(within(super().gather(), self.zookeeper.chroot))

    def close(self) -> None:
        stood_by, self._stood_by = self._stood_by, []
        servers, self._servers_found = self._servers_found, []
        super().close()
        for server in servers:
            server.close()  # after the brokers: one that was paused runs on now
        try:
            if stood_by:
                wait_until_ready(Address(self.zookeeper.servers), SERVES_TIMEOUT_MS)
                remove_chroot(self.zookeeper)
        finally:
            start_again(stood_by)


def start_again(containers: Sequence[Container]) -> None:
    """Start all that can be. ServerError names those that cannot: something else may have taken
    their published ports meanwhile."""
    from docker.errors import APIError

    failed = []
    for container in containers:
        try:
            container.start()
        except APIError as error:
            failed.append(f"{container.name} ({error.explanation or error})")
    if failed:
        raise ServerError(f"the environment's brokers do not start again: {', '.join(failed)}")
