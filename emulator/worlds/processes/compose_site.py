"""Where brokers run in the environment of docker-compose.yml: its network, its ZooKeeper.

The environment's own brokers stand by for the time of a run: they are stopped, brokers with the
scenario's settings take their names, and afterwards they are started again. ZooKeeper keeps the run
in a chroot of its own, which goes with it. From inside (`docker compose run lab`) all are reached
by their names; from the host on the ports that are published.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

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

PROJECT, SERVICE = "com.docker.compose.project", "com.docker.compose.service"
ONE_OFF = "com.docker.compose.oneoff"
STOPS_S = 60
"""The last of several brokers finds nobody to hand its leaderships to, and tries three times. One
that is killed leaves a registration, and would not start again while that stands."""


class NoEnvironment(ServerError):
    """`docker compose up` was not, or it is not clear which."""


class ComposeDeployment(ContainerDeployment):
    """One run inside an environment that is there."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """See ContainerDeployment."""
        self._stood_by: list[Any] = []
        self._servers_found: list[FoundServer] = []
        super().__init__(scenario, folder)

    def _prepare(self, scenario: Scenario) -> None:
        """What there is, found; nothing is done to it yet."""
        self._times = server_times(scenario, 1)
        self._found = self._services()
        self.network = next(iter(self._networks(self._found["broker-1"])))
        own = self._own_container()
        self._inside = own is not None
        self.here = self._here(own)
        self.labels |= {PROJECT: self._project, SERVICE: self.name, ONE_OFF: "False"}
        named = self._zookeepers()
        self._servers_found = [FoundServer(self._found[name]) for name, _ in named]
        self._struck = Ensemble(self._servers_found)
        self.zookeeper = Address(tuple(self._reach(*one) for one in named), f"/{self.name}")

    def _services(self) -> dict[str, Any]:
        """The environment's containers by service. Raises NoEnvironment."""
        wanted = os.environ.get("COMPOSE_PROJECT_NAME", "")
        own = self._own_container()
        if own is not None:
            wanted = own.labels.get(PROJECT, wanted)
        every = self.engine.containers.list(filters={"label": PROJECT})
        found = {one.labels[PROJECT] for one in every if one.labels.get(SERVICE) == "broker-1"}
        projects = sorted(found & {wanted} if wanted else found)
        if len(projects) != 1:
            what = "several environments run" if projects else "no environment runs"
            raise NoEnvironment(
                f"--target compose: {what}; docker compose up -d, COMPOSE_PROJECT_NAME names one"
            )
        (self._project,) = projects
        return {one.labels[SERVICE]: one for one in every if one.labels[PROJECT] == self._project}

    def _own_container(self) -> Any:
        """The one that this process is in, if it is in one."""
        from docker.errors import NotFound

        try:
            return self.engine.containers.get(socket.gethostname())
        except NotFound:
            return None

    def _networks(self, container: Any) -> dict[str, Any]:
        found: dict[str, Any] = container.attrs["NetworkSettings"]["Networks"]
        return found

    def _here(self, own: Any) -> str:
        if own is not None:
            return str(self._networks(own)[self.network]["IPAddress"])
        network = self.engine.networks.get(self.network)
        network.reload()
        return str(network.attrs["IPAM"]["Config"][0]["Gateway"])

    def _zookeepers(self) -> tuple[tuple[str, int], ...]:
        """The servers that the environment's brokers use, by their names."""
        words = self._found["broker-1"].attrs["Config"]["Cmd"]
        return parse_address(words[words.index("--zookeeper") + 1]).servers

    def _reach(self, service: str, port: int) -> tuple[str, int]:
        """Where this process reaches a service of the environment."""
        if self._inside:
            return service, port
        settings = self._found[service].attrs["NetworkSettings"]
        for published in settings["Ports"].get(f"{port}/tcp") or ():
            return HOST, int(published["HostPort"])
        return str(settings["Networks"][self.network]["IPAddress"]), port

    # -- up ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Its brokers stand by; the servers must allow the sessions that the scenario asks for."""
        _, least_ms, most_ms = self._times
        plain = Address(self.zookeeper.servers)
        wait_until_ready(plain)
        for asked_ms in (least_ms, most_ms):
            require_session_timeout(plain, asked_ms)
        self._require_servers()
        for name, container in sorted(self._found.items()):
            if name.startswith("broker-"):
                self._stood_by.append(container)
                container.stop(timeout=STOPS_S)
        ensure_chroot(self.zookeeper)

    def _require_servers(self) -> None:
        there, wanted = len(self._servers_found), self.scenario.zookeeper.servers
        if there < wanted:
            raise NoEnvironment(
                f"--target compose: the scenario wants {wanted} ZooKeeper servers, the"
                f" environment's brokers use {there}"
            )

    def reached(self, broker: int) -> tuple[str, int]:
        return self.told(broker) if self._inside else super().reached(broker)

    def _published(self, broker: int) -> dict[str, Any]:
        return {} if self._inside else super()._published(broker)

    # -- down --------------------------------------------------------------------------------------

    def gather(self) -> list[Entry]:
        return list(within(super().gather(), self.zookeeper.chroot))

    def close(self) -> None:
        stood_by, self._stood_by = self._stood_by, []
        servers, self._servers_found = self._servers_found, []
        super().close()
        for server in servers:
            server.close()
        try:
            if stood_by:
                wait_until_ready(Address(self.zookeeper.servers), SERVES_TIMEOUT_MS)
                remove_chroot(self.zookeeper)
        finally:
            for container in stood_by:
                container.start()
